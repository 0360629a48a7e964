//! Nodes that exist only as objects, with leases that are renewed, and what their kubelets would say
//! of pods: all run at once, and go at once.

use crate::pool;
use crate::schedule::shape::{HOSTNAME, ZONE};
use crate::scratch::Scratch;
use anyhow::Context;
use coracle_client::Client;
use coracle_client::clock::Clock;
use coracle_client::lease::NodeLease;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeStatus, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::Api;
use kube::api::{
    DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use serde_json::json;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Pods a node takes, as the kubelet's default.
pub const PODS_PER_NODE: usize = 110;
/// The nodes are in so many zones, evenly.
const ZONES: usize = 3;
const WATCH_SECONDS: u32 = 290;
/// Of kubelets, all together.
const REQUESTS_AT_ONCE: usize = 32;

pub fn node_names(scratch: &Scratch, nodes: usize) -> Vec<String> {
    (0..nodes)
        .map(|number| format!("{}-{number}", scratch.name))
        .collect()
}

/// Makes the nodes. Their leases are renewed until what it gives back is dropped.
pub async fn join(
    scratch: &Scratch,
    clients: &[Client],
    nodes: &[String],
) -> anyhow::Result<JoinSet<()>> {
    register_all(scratch, clients, nodes).await?;
    let mut renewals = JoinSet::new();
    for (number, name) in nodes.iter().enumerate() {
        let client = clients[number % clients.len()].clone();
        let mut lease = NodeLease::new(client, name, Clock::system());
        renewals.spawn(async move {
            loop {
                // One that fails is tried again: four are due before the node counts as lost.
                drop(lease.renew().await);
                tokio::time::sleep(NodeLease::RENEW_INTERVAL).await;
            }
        });
    }
    Ok(renewals)
}

/// Makes the nodes and leaves their leases to the caller.
pub async fn register_all(
    scratch: &Scratch,
    clients: &[Client],
    nodes: &[String],
) -> anyhow::Result<()> {
    let made = pool::run("node create", clients, nodes.len(), {
        let (nodes, labels) = (Arc::<[String]>::from(nodes), scratch.labels());
        move |client, number| {
            let (name, labels) = (nodes[number].clone(), labels.clone());
            async move { register(&client, name, number, labels).await }
        }
    });
    let failed = made.await?.failed;
    anyhow::ensure!(failed == 0, "{failed} nodes could not be registered");
    Ok(())
}

/// Answers for the pods of the namespace until it is dropped.
pub async fn kubelets(scratch: &Scratch, clients: &[Client]) -> anyhow::Result<JoinSet<()>> {
    let api: Api<Pod> = Api::namespaced(scratch.client.clone(), &scratch.name);
    let from = api.list(&ListParams::default()).await?.metadata;
    let from = from.resource_version.context("a list without a version")?;
    let params = WatchParams::default().timeout(WATCH_SECONDS);
    let (namespace, clients) = (scratch.name.clone(), clients.to_vec());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let Ok(stream) = api.watch(&params, &from).await else {
            return;
        };
        let mut stream = std::pin::pin!(stream);
        let places = Arc::new(Semaphore::new(REQUESTS_AT_ONCE));
        let (mut begun, mut ended) = (HashSet::new(), HashSet::new());
        let mut requests = JoinSet::new();
        while let Some(Ok(event)) = stream.next().await {
            let (WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = event else {
                continue;
            };
            let (Some(name), Some(uid)) = (pod.metadata.name, pod.metadata.uid) else {
                continue;
            };
            let is_bound = pod.spec.is_some_and(|spec| spec.node_name.is_some());
            let is_ending = pod.metadata.deletion_timestamp.is_some();
            let is_new = match is_ending {
                true => ended.insert(uid),
                false => is_bound && begun.insert(uid),
            };
            if !is_new {
                continue;
            }
            let client = clients[begun.len() % clients.len()].clone();
            let own: Api<Pod> = Api::namespaced(client, &namespace);
            let places = Arc::clone(&places);
            requests.spawn(async move {
                let _place = places.acquire_owned().await;
                // What fails here is seen as a pod that never settles.
                match is_ending {
                    true => drop(own.delete(&name, &now()).await),
                    false => drop(
                        own.patch_status(&name, &PatchParams::default(), &runs())
                            .await,
                    ),
                }
            });
            while requests.try_join_next().is_some() {}
        }
    });
    Ok(tasks)
}

fn now() -> DeleteParams {
    DeleteParams::default().grace_period(0)
}

fn runs() -> Patch<serde_json::Value> {
    let now = Clock::system().time();
    let is_true = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
    Patch::Merge(json!({"status": {
        "phase": "Running",
        "podIP": "10.42.0.9",
        "podIPs": [{"ip": "10.42.0.9"}],
        "startTime": now,
        "conditions": [is_true("PodScheduled"), is_true("ContainersReady"), is_true("Ready")],
    }}))
}

/// The status is a write of its own: a create drops it.
async fn register(
    client: &Client,
    name: String,
    number: usize,
    mut labels: BTreeMap<String, String>,
) -> Result<(), kube::Error> {
    let api: Api<Node> = Api::all(client.clone());
    labels.insert(HOSTNAME.to_owned(), name.clone());
    labels.insert(ZONE.to_owned(), format!("zone-{}", number % ZONES));
    let node = Node {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        ..Node::default()
    };
    api.create(&PostParams::default(), &node).await?;
    let size = BTreeMap::from([
        ("cpu".to_owned(), Quantity("64".to_owned())),
        ("memory".to_owned(), Quantity("256Gi".to_owned())),
        ("pods".to_owned(), Quantity(PODS_PER_NODE.to_string())),
    ]);
    let now = Clock::system().time();
    let status = NodeStatus {
        allocatable: Some(size.clone()),
        capacity: Some(size),
        conditions: Some(vec![NodeCondition {
            type_: "Ready".to_owned(),
            status: "True".to_owned(),
            reason: Some("KubeletReady".to_owned()),
            last_heartbeat_time: Some(now.clone()),
            last_transition_time: Some(now),
            ..NodeCondition::default()
        }]),
        ..NodeStatus::default()
    };
    let patch = Patch::Merge(serde_json::json!({ "status": status }));
    api.patch_status(&name, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}
