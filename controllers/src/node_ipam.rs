//! Gives each node a part of the cluster's pod addresses, as `spec.podCIDR`.
//!
//! Reads Nodes; writes `spec.podCIDR` and `spec.podCIDRs` of a node that has none. What a node has
//! is never changed: its pods live there. One worker, so that no part is given twice.

use crate::Context;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{EventType, Recorder, reference};
use coracle_client::informer::{Change, Informer};
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

mod blocks; // Pure: which blocks there are, which is free.

use blocks::Blocks;

const WORKERS: usize = 1;
/// A node that got none is looked at again: another may have left.
const RETRY: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
#[error("cannot give the node {node} its addresses")]
pub(crate) struct AssignError {
    node: String,
    source: kube::Error,
}

struct Controller {
    client: Client,
    nodes: Informer<Node>,
    blocks: Blocks,
    recorder: Recorder,
    /// Given out, and not yet seen in the informer: by node name.
    pending: Mutex<HashMap<String, usize>>,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let blocks = match Blocks::new(&context.config.cluster_cidr) {
            Ok(blocks) => blocks,
            Err(error) => {
                tracing::error!(%error, "nodes get no addresses for pods");
                return context.shutdown.cancelled().await;
            }
        };
        let queue = WorkQueue::<ObjectKey>::new();
        let controller = Arc::new(Controller {
            client: context.client.clone(),
            nodes: context.informers.get(),
            blocks,
            recorder: context.recorder("cidrAllocator"),
            pending: Mutex::default(),
        });
        let (added, told) = (queue.clone(), Arc::clone(&controller));
        controller.nodes.on_change(move |change| match change {
            Change::Deleted(node) => {
                told.pending
                    .lock()
                    .remove(node.metadata.name.as_deref().unwrap_or_default());
            }
            _ => added.add(key_of(change.object().as_ref())),
        });
        if !controller.nodes.synced().await {
            return;
        }
        let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)));
        control_loop::run("node-ipam", queue, WORKERS, reconcile, context.shutdown).await;
    })
}

fn cidr(node: &Node) -> Option<&str> {
    let spec = node.spec.as_ref()?;
    spec.pod_cidr.as_deref().filter(|cidr| !cidr.is_empty())
}

impl Controller {
    fn used(&self) -> BTreeSet<usize> {
        let mut pending = self.pending.lock();
        let nodes = self.nodes.list();
        let seen: BTreeSet<usize> = nodes
            .iter()
            .filter_map(|node| {
                let number = self.blocks.number(cidr(node)?)?;
                pending.remove(node.metadata.name.as_deref().unwrap_or_default());
                Some(number)
            })
            .collect();
        seen.into_iter().chain(pending.values().copied()).collect()
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, AssignError> {
        let Some(node) = self.nodes.get(key) else {
            return Ok(Requeue::Never);
        };
        if cidr(&node).is_some() {
            return Ok(Requeue::Never);
        }
        let used = self.used();
        let free = self.pending.lock().get(&key.name).copied();
        let Some(number) = free.or_else(|| self.blocks.first_free(&used)) else {
            let text = format!("Node {} status is now: CIDRNotAvailable", key.name);
            self.recorder.event(
                &reference(&*node),
                EventType::Normal,
                "CIDRNotAvailable",
                text,
            );
            tracing::warn!(node = key.name, "all pod addresses are given");
            return Ok(Requeue::After(RETRY));
        };
        self.pending.lock().insert(key.name.clone(), number);
        let block = self.blocks.cidr(number);
        let patch = json!({
            "metadata": { "uid": node.metadata.uid },
            "spec": { "podCIDR": block, "podCIDRs": [block] },
        });
        let nodes: Api<Node> = Api::all(self.client.clone());
        nodes
            .patch(&key.name, &PatchParams::default(), &Patch::Strategic(patch))
            .await
            .map_err(|source| AssignError {
                node: key.name.clone(),
                source,
            })?;
        Ok(Requeue::Never)
    }
}
