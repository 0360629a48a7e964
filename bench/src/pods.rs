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

/// A latency is from the event that shows a pod bound to the one that shows it running.
pub async fn run(scratch: &Scratch, plan: &Plan) -> anyhow::Result<Report> {
    scratch.wait_for_account().await?;
    let api: Api<Pod> = Api::namespaced(scratch.client.clone(), &scratch.name);
    let from = api.list(&ListParams::default()).await?.metadata;
    let from = from.resource_version.context("a list without a version")?;
    let params = WatchParams::default().timeout(WATCH_SECONDS);
    let stream = api.watch(&params, &from).await;
    let mut stream = std::pin::pin!(stream.context("cannot watch pods")?);
    let clock = Clock::system();
    let begun = clock.monotonic();
    let (mut sent, mut bound) = (0, HashMap::with_capacity(plan.count));
    let mut running: HashMap<String, Instant> = HashMap::with_capacity(plan.count);
    while running.len() < plan.count {
        let room = plan.count.min(running.len() + plan.at_once);
        let new = (sent..room).map(|number| create(&api, scratch, plan, number));
        futures::future::try_join_all(new).await?;
        sent = room;
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
    let latencies: Vec<_> = running
        .iter()
        .filter_map(|(name, at)| Some(*at - *bound.get(name)?))
        .collect();
    let failed = plan.count - latencies.len();
    Ok(Report::new("pods", latencies, failed, last - begun))
}

async fn create(
    api: &Api<Pod>,
    scratch: &Scratch,
    plan: &Plan,
    number: usize,
) -> anyhow::Result<()> {
    let pod = Pod {
        metadata: ObjectMeta {
            name: Some(format!("p-{number}")),
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
