//! How fast pods run: containers that do nothing, of an image that the nodes have.

use crate::scratch::Scratch;
use crate::stats::Report;
use anyhow::Context;
use coracle_client::clock::Clock;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::Api;
use kube::api::{ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// How long nothing may be heard of any pod.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const WATCH_SECONDS: u32 = 290;

pub struct Plan {
    pub count: usize,
    /// So many at a time: one that runs makes room for the next.
    pub at_once: usize,
    pub image: String,
    pub command: Vec<String>,
}

/// Two: from the sending of a pod, and from the event that shows it bound, to the event that shows
/// it running.
pub async fn run(scratch: &Scratch, plan: &Plan) -> anyhow::Result<Vec<Report>> {
    scratch.wait_for_account().await?;
    let api: Api<Pod> = Api::namespaced(scratch.client.clone(), &scratch.name);
    let from = api.list(&ListParams::default()).await?.metadata;
    let from = from.resource_version.context("a list without a version")?;
    let params = WatchParams::default().timeout(WATCH_SECONDS);
    let stream = api.watch(&params, &from).await;
    let mut stream = std::pin::pin!(stream.context("cannot watch pods")?);
    let clock = Clock::system();
    let begun = clock.monotonic();
    let (mut sent, mut bound) = (HashMap::new(), HashMap::new());
    let mut running: HashMap<String, Instant> = HashMap::with_capacity(plan.count);
    while running.len() < plan.count {
        let room = plan.count.min(running.len() + plan.at_once);
        let new: Vec<_> = (sent.len()..room).collect();
        let now = clock.monotonic();
        sent.extend(new.iter().map(|number| (name_of(*number), now)));
        let new = new.into_iter();
        let creates = new.map(|number| create(&api, scratch, plan, number));
        futures::future::try_join_all(creates).await?;
        let event = tokio::time::timeout(SILENCE_MAX, stream.next()).await;
        let Ok(Some(event)) = event else { break };
        let (WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = event? else {
            continue;
        };
        let name = pod.metadata.name.clone().unwrap_or_default();
        if is_bound(&pod) {
            bound.entry(name.clone()).or_insert(clock.monotonic());
        }
        if phase(&pod) == "Running" {
            running.entry(name).or_insert(clock.monotonic());
        }
    }
    let last = running.values().max().copied();
    let last = last.context("no pod runs: does a node have the image?")?;
    let took = last - begun;
    let report = |since: &str, begun: &HashMap<String, Instant>| {
        let pods = running.iter();
        let of_pod = |(name, at): (&String, &Instant)| Some(*at - *begun.get(name)?);
        let latencies: Vec<_> = pods.filter_map(of_pod).collect();
        let failed = plan.count - latencies.len();
        Report::new(format!("pods, {since} to running"), latencies, failed, took)
    };
    let all = ("ms until all ran".to_owned(), took.as_millis() as u64);
    Ok(vec![
        report("applied", &sent).with_notes(vec![all]),
        report("bound", &bound),
    ])
}

fn name_of(number: usize) -> String {
    format!("p-{number}")
}

async fn create(
    api: &Api<Pod>,
    scratch: &Scratch,
    plan: &Plan,
    number: usize,
) -> anyhow::Result<()> {
    let pod = Pod {
        metadata: ObjectMeta {
            name: Some(name_of(number)),
            labels: Some(scratch.labels()),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            automount_service_account_token: Some(false),
            // Nothing is lost by a kill.
            termination_grace_period_seconds: Some(0),
            containers: vec![Container {
                name: "idle".to_owned(),
                image: Some(plan.image.clone()),
                image_pull_policy: Some("IfNotPresent".to_owned()),
                command: (!plan.command.is_empty()).then(|| plan.command.clone()),
                ..Container::default()
            }],
            ..PodSpec::default()
        }),
        ..Pod::default()
    };
    let made = api.create(&PostParams::default(), &pod).await;
    made.map(drop).context("cannot create a pod")
}

fn is_bound(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    spec.is_some_and(|spec| spec.node_name.is_some())
}

fn phase(pod: &Pod) -> &str {
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    phase.unwrap_or_default()
}
