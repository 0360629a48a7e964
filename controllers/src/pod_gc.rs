//! Deletes pods that nobody else will: those of nodes that are gone, those that were deleted before
//! they had a node, those on a node that is out of service, and the oldest ended ones when there
//! are too many.
//!
//! Reads Pods and Nodes; marks and deletes Pods. A node must stay away for a while before its pods
//! go, since a node that registers anew is away for a moment; and that it is gone is believed of the
//! server alone, not of a copy that may lag behind.

use crate::Context;
use coracle_client::clock::Instant;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::informer::{Change, Informer};
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, clock::Clock, key_of};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

mod plan; // Pure. Start reading here.

use plan::{Reason, Removal};

/// One pass looks at all pods.
const WORKERS: usize = 1;
/// How long a node must be gone, as upstream's quarantine.
const QUARANTINE: Duration = Duration::from_secs(40);
/// Changes within this are looked at together.
const GATHER: Duration = Duration::from_millis(500);

/// The one key there is: a pass over everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Sweep;

impl std::fmt::Display for Sweep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("all pods")
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SweepError {
    #[error("cannot ask for the node {node}")]
    Ask { node: String, source: kube::Error },
    #[error("cannot delete the pod {pod}")]
    Delete { pod: ObjectKey, source: kube::Error },
}

struct Controller {
    client: Client,
    pods: Informer<Pod>,
    nodes: Informer<Node>,
    clock: Clock,
    /// Nodes that pods name and that are not there, with since when.
    missing: Mutex<HashMap<String, Instant>>,
    /// What the last pass over everything found is to go. One pod that cannot be deleted keeps none
    /// of the others: each has a key of its own.
    planned: Mutex<HashMap<ObjectKey, Removal>>,
    doomed: WorkQueue<ObjectKey>,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let queue = WorkQueue::<Sweep>::new();
        let controller = Arc::new(Controller {
            client: context.client.clone(),
            pods: context.informers.get(),
            nodes: context.informers.get(),
            clock: context.clock.clone(),
            missing: Mutex::default(),
            planned: Mutex::default(),
            doomed: WorkQueue::new(),
        });
        let added = queue.clone();
        controller.nodes.on_change(move |change| {
            if matches!(change, Change::Deleted(_) | Change::Updated { .. }) {
                added.add_after(Sweep, GATHER);
            }
        });
        let (added, nodes) = (queue.clone(), controller.nodes.clone());
        controller.pods.on_change(move |change| {
            if plan::may_concern(change.object(), |name| {
                nodes.get(&ObjectKey::new("", name)).is_some()
            }) {
                added.add_after(Sweep, GATHER);
            }
        });
        if !(controller.pods.synced().await && controller.nodes.synced().await) {
            return;
        }
        let (pods, doomed) = (controller.pods.clone(), controller.doomed.clone());
        let sweep = control_loop::with(controller.clone(), |it, _| Box::pin(it.sweep()))
            .telling_by_itself();
        let remove = control_loop::with(controller, |it, key| Box::pin(it.remove_planned(key)))
            .telling(pods, context.failures("pod-garbage-collector"));
        let shutdown = context.shutdown;
        tokio::join!(
            control_loop::run("pod-gc", queue, WORKERS, sweep, shutdown.clone()),
            control_loop::run("pod-gc-removals", doomed, WORKERS, remove, shutdown),
        );
    })
}

impl Controller {
    async fn sweep(&self) -> Result<Requeue, SweepError> {
        let now = self.clock.monotonic();
        let pods = self.pods.list();
        let nodes = self.nodes.list();
        let plan = {
            let mut missing = self.missing.lock();
            plan::note_missing(&mut missing, &pods, &nodes, now);
            plan::plan(&pods, &nodes, &missing, now, QUARANTINE)
        };
        let gone = plan.removals.iter();
        let gone = gone.filter(|removal| removal.reason == Reason::NodeGone);
        let named: BTreeSet<&str> = gone.map(|gone| plan::node_name(&gone.pod)).collect();
        let (mut there, mut unknown, mut failed) = (BTreeSet::new(), BTreeSet::new(), None);
        for node in named {
            match self.is_there(node).await {
                Ok(false) => {}
                Ok(true) => drop(there.insert(node)),
                Err(error) => {
                    unknown.insert(node);
                    failed = Some(error);
                }
            }
        }
        let mut look_again = plan.look_again;
        for node in &there {
            self.missing.lock().insert((*node).to_owned(), now);
            look_again = Some(look_again.map_or(QUARANTINE, |soon| soon.min(QUARANTINE)));
        }
        let may_go = |removal: &&Removal| {
            let node = plan::node_name(&removal.pod);
            removal.reason != Reason::NodeGone || !there.contains(node) && !unknown.contains(node)
        };
        let planned: HashMap<ObjectKey, Removal> = plan
            .removals
            .iter()
            .filter(may_go)
            .map(|removal| (key_of(removal.pod.as_ref()), removal.clone()))
            .collect();
        // In the order of the plan, and not again what waits after a failure.
        let mut before = self.planned.lock();
        for removal in plan.removals.iter().filter(may_go) {
            let key = key_of(removal.pod.as_ref());
            if before
                .get(&key)
                .is_none_or(|before| before.pod != removal.pod)
            {
                self.doomed.add(key);
            }
        }
        *before = planned;
        drop(before);
        match failed {
            Some(error) => Err(error),
            None => Ok(look_again.map_or(Requeue::Never, Requeue::After)),
        }
    }

    async fn remove_planned(&self, key: &ObjectKey) -> Result<Requeue, SweepError> {
        let planned = self.planned.lock().get(key).cloned();
        let Some(removal) = planned else {
            return Ok(Requeue::Never);
        };
        // It may have come back since a failure.
        let node = plan::node_name(&removal.pod);
        let has_failed = self.doomed.failures(key) > 0;
        if has_failed && removal.reason == Reason::NodeGone && self.is_there(node).await? {
            let now = self.clock.monotonic();
            self.missing.lock().insert(node.to_owned(), now);
        } else {
            self.remove(&removal).await?;
        }
        self.planned.lock().remove(key);
        Ok(Requeue::Never)
    }

    async fn is_there(&self, node: &str) -> Result<bool, SweepError> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let found = nodes.get_metadata_opt(node).await;
        let found = found.map_err(|source| SweepError::Ask {
            node: node.to_owned(),
            source,
        })?;
        Ok(found.is_some())
    }

    async fn remove(&self, removal: &Removal) -> Result<(), SweepError> {
        let pod = &removal.pod;
        let key = key_of(pod.as_ref());
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        let failed = |source| SweepError::Delete {
            pod: key.clone(),
            source,
        };
        if let Some(patch) = self.mark(removal) {
            let (params, patch) = (PatchParams::default(), Patch::Strategic(patch));
            match pods.patch_status(&key.name, &params, &patch).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(()),
                Err(error) => return Err(failed(error)),
            }
        }
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: pod.metadata.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match pods.delete(&key.name, &params).await {
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {
                Ok(())
            }
            Err(error) => Err(failed(error)),
            Ok(_) => {
                tracing::info!(pod = %key, reason = ?removal.reason, "deleted");
                Ok(())
            }
        }
    }

    /// A pod that had not ended is told to have failed, and why, before it goes.
    fn mark(&self, removal: &Removal) -> Option<serde_json::Value> {
        let phase = removal
            .pod
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        if matches!(phase, Some("Succeeded" | "Failed")) {
            return None;
        }
        let mut status = json!({ "phase": "Failed" });
        if removal.reason == Reason::NodeGone {
            status["conditions"] = json!([{
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists",
                "lastTransitionTime": self.clock.time(),
            }]);
        }
        Some(json!({ "metadata": { "uid": removal.pod.metadata.uid }, "status": status }))
    }
}

#[cfg(test)]
mod tests;
