//! Gives each node a part of the cluster's pod addresses, one of each IP family that they are of, as
//! `spec.podCIDR` and `spec.podCIDRs`.
//!
//! Reads Nodes; writes `spec.podCIDR` and `spec.podCIDRs` of a node that has none. What a node has
//! is never changed: its pods live there. One worker, so that no part is given twice.

use crate::Context;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{EventType, Recorder, reference};
use coracle_client::informer::{Change, Informer};
use coracle_client::pod_cidrs::pod_cidrs;
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
    /// Of each IP family, in the order of the cluster's networks.
    ranges: Vec<Blocks>,
    recorder: Recorder,
    /// Given out, and not yet seen in the informer: by node name, a number of each range.
    pending: Mutex<HashMap<String, Vec<usize>>>,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let networks = context.config.cluster_cidr.split(',');
        let ranges = match networks.map(Blocks::new).collect::<Result<_, _>>() {
            Ok(ranges) => ranges,
            Err(error) => {
                tracing::error!(%error, "nodes get no addresses for pods");
                return context.shutdown.cancelled().await;
            }
        };
        let queue = WorkQueue::<ObjectKey>::new();
        let controller = Arc::new(Controller {
            client: context.client.clone(),
            nodes: context.informers.get(),
            ranges,
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
        let (objects, recorder) = (controller.nodes.clone(), controller.recorder.clone());
        let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
            .telling(objects, recorder);
        control_loop::run("node-ipam", queue, WORKERS, reconcile, context.shutdown).await;
    })
}

impl Controller {
    /// The numbers that are given, of each range.
    fn used(&self) -> Vec<BTreeSet<usize>> {
        let mut pending = self.pending.lock();
        let nodes = self.nodes.list();
        let mut used = vec![BTreeSet::new(); self.ranges.len()];
        for node in &nodes {
            let all: Vec<_> = pod_cidrs(node).collect();
            if !all.is_empty() {
                pending.remove(node.metadata.name.as_deref().unwrap_or_default());
            }
            for (used, range) in used.iter_mut().zip(&self.ranges) {
                used.extend(all.iter().filter_map(|cidr| range.number(cidr)));
            }
        }
        for numbers in pending.values() {
            for (used, number) in used.iter_mut().zip(numbers) {
                used.insert(*number);
            }
        }
        used
    }

    /// None when a range has no block left.
    fn free(&self, name: &str) -> Option<Vec<usize>> {
        let used = self.used();
        if let Some(numbers) = self.pending.lock().get(name) {
            return Some(numbers.clone());
        }
        let ranges = self.ranges.iter().zip(&used);
        ranges.map(|(range, used)| range.first_free(used)).collect()
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, AssignError> {
        let Some(node) = self.nodes.get(key) else {
            return Ok(Requeue::Never);
        };
        if pod_cidrs(&node).next().is_some() {
            return Ok(Requeue::Never);
        }
        let Some(numbers) = self.free(&key.name) else {
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
        let ranges = self.ranges.iter().zip(&numbers);
        let blocks: Vec<_> = ranges.map(|(range, number)| range.cidr(*number)).collect();
        self.pending.lock().insert(key.name.clone(), numbers);
        let patch = json!({
            "metadata": { "uid": node.metadata.uid },
            "spec": { "podCIDR": blocks[0], "podCIDRs": blocks },
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

#[cfg(test)]
mod tests;
