//! The writes and events of the loop. Each write of a node insists on the state it was decided
//! on, so that a node that is heard of meanwhile wins.

use coracle_client::events::{EventType, reference};
use coracle_client::key_of;
use coracle_client::patch::{self, PatchError, Precondition};
use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::node::{self, Readiness};
use super::zones::Pass;
use super::{Controller, plan};
use crate::{node_pods, pods, refusal};

#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error("cannot write the node {name}")]
    Node {
        name: String,
        #[source]
        source: PatchError,
    },
    #[error("cannot mark the pod {name} as not ready")]
    Pod {
        name: String,
        #[source]
        source: kube::Error,
    },
}

/// A node that may be gone by now.
fn about(name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

impl Controller {
    pub(super) fn tell_registered(&self, node: &Node) {
        let name = node::name(node);
        let text = format!("Node {name} event: Registered Node {name} in Controller");
        self.tell(node, "RegisteredNode", text);
    }

    pub(super) fn tell_removed(&self, name: &str, uid: &str) {
        let text = format!("Node {name} event: Removing Node {name} from Controller");
        let node = about(name, uid);
        self.recorder
            .event(&node, EventType::Normal, "RemovingNode", text);
    }

    fn tell(&self, node: &Node, reason: &str, text: String) {
        let uid = node.metadata.uid.as_deref().unwrap_or_default();
        let node = about(node::name(node), uid);
        self.recorder.event(&node, EventType::Normal, reason, text);
    }

    pub(super) async fn write_lost(&self, old: &Node, new: &Node) -> Result<(), WriteError> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let name = node::name(old);
        patch::status(&nodes, old, new, Precondition::Unchanged)
            .await
            .map_err(|source| WriteError::Node {
                name: name.to_owned(),
                source,
            })?;
        tracing::warn!(node = name, "not heard of for too long");
        if node::readiness(old) == Readiness::Ready {
            let text = format!("Node {name} status is now: NodeNotReady");
            self.tell(new, "NodeNotReady", text);
        }
        Ok(())
    }

    pub(super) async fn write_node(&self, old: &Node, new: &Node) -> Result<(), WriteError> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        patch::object(&nodes, old, new, Precondition::Unchanged)
            .await
            .map(|_| ())
            .map_err(|source| WriteError::Node {
                name: node::name(old).to_owned(),
                source,
            })
    }

    /// One node that cannot be written does not hold up the others.
    pub(super) async fn write_taints(&self, pass: &Pass) -> Result<(), WriteError> {
        let mut failed = None;
        if !pass.spare.is_empty() {
            tracing::warn!("no node is ready: no pod is moved");
        }
        for name in &pass.spare {
            let node = self.node(name);
            let spared = node.as_deref().and_then(plan::spared);
            if let (Some(old), Some(new)) = (node, spared)
                && let Err(error) = self.write_node(&old, &new).await
            {
                failed.get_or_insert(error);
            }
        }
        for name in &pass.taint {
            let node = self.node(name);
            let now = self.clock.time();
            let tainted = node.as_deref().and_then(|node| plan::evicting(node, &now));
            let (Some(old), Some(new)) = (node, tainted) else {
                continue;
            };
            match self.write_node(&old, &new).await {
                Ok(()) => tracing::info!(node = name, "its pods may be moved"),
                Err(error) => {
                    self.zones.lock().take_back(name);
                    failed.get_or_insert(error);
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    pub(super) async fn mark_pods(&self, node: &str) -> Result<(), WriteError> {
        let mut failed = None;
        for pod in node_pods::on_node(&self.pods, node) {
            if let Err(error) = self.mark_pod(&pod).await {
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    pub(super) async fn mark_pod(&self, pod: &Pod) -> Result<(), WriteError> {
        let said = pods::condition(pod, "Ready").is_none_or(|it| it.status == "False");
        if said {
            return Ok(());
        }
        let key = key_of(pod);
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        let patch = json!({
            "metadata": { "uid": pod.metadata.uid },
            "status": { "conditions": [{
                "type": "Ready",
                "status": "False",
                "lastTransitionTime": self.clock.time(),
            }] },
        });
        let (params, patch) = (PatchParams::default(), Patch::Strategic(patch));
        match pods.patch_status(&key.name, &params, &patch).await {
            Err(error) if refusal::is_not_found(&error) => return Ok(()),
            Err(source) => {
                let name = key.to_string();
                return Err(WriteError::Pod { name, source });
            }
            Ok(_) => {}
        }
        self.recorder.event(
            &reference(pod),
            EventType::Warning,
            "NodeNotReady",
            "Node is not ready",
        );
        Ok(())
    }
}
