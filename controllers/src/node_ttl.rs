//! Tells each node how long it may believe its copies of Secrets and ConfigMaps, the longer the more
//! nodes there are. Kubelets that read by time look at it; the agent follows what it uses, and does
//! not.
//!
//! Reads Nodes; writes one annotation of them. Changes of a node's own state are no work.

use std::sync::Arc;

use coracle_client::control_loop::{self, Requeue};
use coracle_client::informer::{Change, Informer};
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use parking_lot::Mutex;
use serde_json::json;

use crate::{Context, refusal};

mod plan; // Pure. Start reading here.

use plan::Step;

pub(crate) const NAME: &str = "ttl-controller";
/// As many as upstream's.
const WORKERS: usize = 5;

#[derive(Debug, thiserror::Error)]
#[error("cannot annotate the node {node}")]
struct AnnotateError {
    node: String,
    source: kube::Error,
}

struct Controller {
    client: Client,
    nodes: Informer<Node>,
    queue: WorkQueue<ObjectKey>,
    step: Mutex<Step>,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    run_loop(context).boxed()
}

async fn run_loop(context: Context) {
    let controller = Arc::new(Controller {
        client: context.client.clone(),
        nodes: context.informers.get(),
        queue: WorkQueue::new(),
        step: Mutex::default(),
    });
    if !controller.nodes.synced().await {
        return;
    }
    let told = Arc::clone(&controller);
    controller
        .nodes
        .on_change(move |change| told.changed(change));
    let queue = controller.queue.clone();
    let (objects, recorder) = (controller.nodes.clone(), context.failures(NAME));
    let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
        .telling(objects, recorder);
    control_loop::run(NAME, queue, WORKERS, reconcile, context.shutdown).await;
}

impl Controller {
    fn changed(&self, change: &Change<Node>) {
        let step = {
            let mut step = self.step.lock();
            let before = *step;
            *step = before.with(self.nodes.len());
            (*step != before).then_some(*step)
        };
        let matters = match change {
            Change::Updated { old, new } => old.metadata.annotations != new.metadata.annotations,
            Change::Deleted(_) => false,
            Change::Added(_) | Change::Resync(_) => true,
        };
        if step.is_some() {
            let nodes = self.nodes.list();
            nodes
                .iter()
                .for_each(|node| self.queue.add(key_of(node.as_ref())));
        } else if matters {
            self.queue.add(key_of(change.object().as_ref()));
        }
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, AnnotateError> {
        let seconds = self.step.lock().seconds();
        let node = self.nodes.get(key);
        if node.is_none_or(|node| plan::says(&node, seconds)) {
            return Ok(Requeue::Never);
        }
        let nodes: Api<Node> = Api::all(self.client.clone());
        let annotations = json!({ plan::ANNOTATION: seconds.to_string() });
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
        match nodes
            .patch(&key.name, &PatchParams::default(), &patch)
            .await
        {
            Ok(_) => Ok(Requeue::Never),
            Err(error) if refusal::is_not_found(&error) => Ok(Requeue::Never),
            Err(source) => Err(AnnotateError {
                node: key.name.clone(),
                source,
            }),
        }
    }
}

#[cfg(test)]
mod tests;
