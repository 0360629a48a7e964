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
use std::collections::HashMap;
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
        let reconcile = control_loop::with(controller, |it, _| Box::pin(it.sweep()));
        control_loop::run("pod-gc", queue, WORKERS, reconcile, context.shutdown).await;
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
        let (mut look_again, mut there) = (plan.look_again, HashMap::new());
        for removal in &plan.removals {
            if removal.reason == Reason::NodeGone {
                let node = plan::node_name(&removal.pod);
                let is_there = match there.get(node) {
                    Some(is_there) => *is_there,
                    None => self.is_there(node).await?,
                };
                there.insert(node, is_there);
                if is_there {
                    self.missing.lock().insert(node.to_owned(), now);
                    look_again = Some(look_again.map_or(QUARANTINE, |soon| soon.min(QUARANTINE)));
                    continue;
                }
            }
            self.remove(removal).await?;
        }
        Ok(look_again.map_or(Requeue::Never, Requeue::After))
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
