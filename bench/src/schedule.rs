//! How fast pods are bound: nodes that exist only as objects, with leases that are renewed, and
//! pods that nobody runs.

use crate::fake_nodes;
use crate::pool;
use crate::scratch::Scratch;
use crate::stats::Report;
use anyhow::Context;
use coracle_client::Client;
use coracle_client::clock::Clock;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

pub mod shape; // What the measured pods ask of the scheduler.

use shape::{Shape, VICTIMS_PER_NODE};

/// How long no pod may be bound before the rest counts as failed.
const SILENCE_MAX: Duration = Duration::from_secs(30);
const WATCH_SECONDS: u32 = 290;

/// A latency is from the sending of a pod to the event that shows it bound.
pub async fn run(
    scratch: &Scratch,
    clients: &[Client],
    count: usize,
    nodes: &[String],
    shape: Shape,
) -> anyhow::Result<Report> {
    anyhow::ensure!(
        count <= shape.room(nodes.len()),
        "{count} pods do not fit on {} nodes, which take {}: raise --nodes",
        nodes.len(),
        shape.room(nodes.len())
    );
    let _nodes = fake_nodes::join(scratch, clients, nodes).await?;
    scratch.wait_for_account().await?;
    if shape == Shape::Preempt {
        shape::make_classes(scratch).await?;
        let of_victim = |number| shape::victim(scratch, number);
        let victims = nodes.len() * VICTIMS_PER_NODE;
        measure(scratch, clients, victims, "fill", of_victim).await?;
    }
    let template = shape.pod(scratch);
    let measured = |number| {
        let mut pod = template.clone();
        pod.metadata.name = Some(format!("p-{number}"));
        pod
    };
    measure(scratch, clients, count, "schedule", measured).await
}

async fn measure(
    scratch: &Scratch,
    clients: &[Client],
    count: usize,
    work: &'static str,
    pod: impl Fn(usize) -> Pod,
) -> anyhow::Result<Report> {
    let clock = Clock::system();
    let api: Api<Pod> = Api::namespaced(scratch.client.clone(), &scratch.name);
    let from = api.list(&ListParams::default()).await?;
    let from = from
        .metadata
        .resource_version
        .context("a list without a version")?;
    let params = WatchParams::default().timeout(WATCH_SECONDS);
    let stream = api
        .watch(&params, &from)
        .await
        .context("cannot watch pods")?;
    let pods: Arc<[Pod]> = (0..count).map(pod).collect();
    let names: HashSet<_> = pods.iter().map(|pod| pod.metadata.name.clone()).collect();
    let begun = clock.monotonic();
    let sent = Arc::new(std::sync::Mutex::new(HashMap::with_capacity(count)));
    let creator = {
        let (sent, namespace) = (Arc::clone(&sent), Arc::<str>::from(scratch.name.as_str()));
        let clock = clock.clone();
        pool::run("pod create", clients, count, move |client, number| {
            let api: Api<Pod> = Api::namespaced(client, &namespace);
            let pod = pods[number].clone();
            let name = pod.metadata.name.clone().unwrap_or_default();
            let mut all = sent.lock().unwrap_or_else(|broken| broken.into_inner());
            all.insert(name, clock.monotonic());
            drop(all);
            async move { api.create(&PostParams::default(), &pod).await.map(drop) }
        })
    };
    let counter = async {
        let mut stream = std::pin::pin!(stream);
        let mut bound: HashMap<String, Instant> = HashMap::with_capacity(count);
        while bound.len() < count {
            let Ok(Some(Ok(event))) = tokio::time::timeout(SILENCE_MAX, stream.next()).await else {
                break;
            };
            let (WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = event else {
                continue;
            };
            let is_ours = names.contains(&pod.metadata.name);
            if is_ours && pod.spec.is_some_and(|spec| spec.node_name.is_some()) {
                let name = pod.metadata.name.unwrap_or_default();
                bound.entry(name).or_insert_with(|| clock.monotonic());
            }
        }
        Ok(bound)
    };
    let (_, bound) = tokio::try_join!(creator, counter)?;
    let last = bound
        .values()
        .max()
        .copied()
        .context("no pod was bound in 30 s")?;
    let sent = sent.lock().unwrap_or_else(|broken| broken.into_inner());
    let latencies: Vec<_> = bound
        .iter()
        .filter_map(|(name, at)| Some(*at - *sent.get(name)?))
        .collect();
    let failed = count - latencies.len();
    Ok(Report::new(work, latencies, failed, last - begun))
}
