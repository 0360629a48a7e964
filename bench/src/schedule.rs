//! How fast pods are bound: nodes that exist only as objects, with leases that are renewed, and
//! pods that nobody runs.

use crate::fake_nodes::{self, PODS_PER_NODE};
use crate::pool;
use crate::scratch::Scratch;
use crate::stats::Report;
use anyhow::Context;
use coracle_client::Client;
use coracle_client::clock::Clock;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, Toleration};
use kube::Api;
use kube::api::{ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long no pod may be bound before the rest counts as failed.
const SILENCE_MAX: Duration = Duration::from_secs(30);
const WATCH_SECONDS: u32 = 290;

/// A latency is from the sending of a pod to the event that shows it bound.
pub async fn run(
    scratch: &Scratch,
    clients: &[Client],
    count: usize,
    nodes: &[String],
) -> anyhow::Result<Report> {
    anyhow::ensure!(
        count <= nodes.len() * PODS_PER_NODE,
        "{count} pods do not fit on {} nodes of {PODS_PER_NODE}: raise --nodes",
        nodes.len()
    );
    let _nodes = fake_nodes::join(scratch, nodes).await?;
    scratch.wait_for_account().await?;
    measure(scratch, clients, count).await
}

async fn measure(scratch: &Scratch, clients: &[Client], count: usize) -> anyhow::Result<Report> {
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
    let begun = clock.monotonic();
    let sent = Arc::new(std::sync::Mutex::new(HashMap::with_capacity(count)));
    let creator = {
        let (sent, namespace) = (Arc::clone(&sent), Arc::<str>::from(scratch.name.as_str()));
        let (template, clock) = (Arc::new(pod(scratch)), clock.clone());
        pool::run("pod create", clients, count, move |client, number| {
            let api: Api<Pod> = Api::namespaced(client, &namespace);
            let mut pod = Pod::clone(&template);
            let name = format!("p-{number}");
            pod.metadata.name = Some(name.clone());
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
            if pod.spec.is_some_and(|spec| spec.node_name.is_some()) {
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
    Ok(Report::new("schedule", latencies, failed, last - begun))
}

/// Bound to our nodes only; also while these still carry the taint of new nodes.
fn pod(scratch: &Scratch) -> Pod {
    Pod {
        metadata: ObjectMeta {
            labels: Some(scratch.labels()),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            automount_service_account_token: Some(false),
            node_selector: Some(scratch.labels()),
            containers: vec![Container {
                name: "idle".to_owned(),
                image: Some("registry.k8s.io/pause:3.10".to_owned()),
                ..Container::default()
            }],
            tolerations: Some(vec![Toleration {
                key: Some("node.kubernetes.io/not-ready".to_owned()),
                operator: Some("Exists".to_owned()),
                ..Toleration::default()
            }]),
            ..PodSpec::default()
        }),
        ..Pod::default()
    }
}
