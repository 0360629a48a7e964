//! What the server is told of the node's drivers: the CSINode object, and the Node's labels and
//! annotation. Words of errors are upstream's.

mod change; // Pure.

use super::Csi;
use super::messages::NodeGetInfoResponse;
use crate::error::chain;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::CSINode;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use std::time::Duration;

/// Upstream's tries of a write that others may get in the way of.
const TRIES: u32 = 4;
const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_FACTOR: u32 = 5;

impl Csi {
    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    fn csi_nodes(&self) -> Api<CSINode> {
        Api::all(self.client.clone())
    }

    /// The object is there, and the node's own, also without any driver.
    pub(super) async fn introduce(&self) -> Result<(), String> {
        again(|| async { self.own_csi_node().await.map(drop) }).await
    }

    pub(super) async fn install(
        &self,
        driver: &str,
        info: &NodeGetInfoResponse,
    ) -> Result<(), String> {
        if info.node_id.is_empty() {
            let why = "error adding CSI driver node info: driverNodeID must not be empty";
            return Err(why.to_owned());
        }
        let topology = info.accessible_topology.clone().unwrap_or_default();
        let id = &info.node_id;
        let change = || async {
            let node = self.node_object().await?;
            let change = change::installed(&node, driver, id, &topology.segments)?;
            self.patch_node(&node, change).await
        };
        again(change).await.map_err(|error| {
            format!("error updating Node object with CSI driver node info: {error}")
        })?;
        let change = || async {
            let mut own = self.own_csi_node().await?;
            if change::install(&mut own, driver, info) {
                self.replace(&own).await?;
            }
            Ok(())
        };
        again(change).await.map_err(|error| {
            format!("error updating CSINode object with CSI driver node info: {error}")
        })
    }

    pub(super) async fn uninstall(&self, driver: &str) -> Result<(), String> {
        let change = || async {
            let found = self.csi_nodes().get_opt(&self.node_name).await;
            let Some(mut own) = found.map_err(|error| chain(&error))? else {
                return Ok(());
            };
            if change::uninstall(&mut own, driver) {
                self.replace(&own).await?;
            }
            Ok(())
        };
        again(change).await.map_err(|error| {
            format!("error uninstalling CSI driver from CSINode object {error}")
        })?;
        let change = || async {
            let node = self.node_object().await?;
            self.patch_node(&node, change::uninstalled(&node, driver)?)
                .await
        };
        again(change).await.map_err(|error| {
            format!("error removing CSI driver node info from Node object {error}")
        })
    }

    async fn node_object(&self) -> Result<Node, String> {
        let node = self.nodes().get(&self.node_name).await;
        node.map_err(|error| chain(&error))
    }

    async fn patch_node(
        &self,
        node: &Node,
        change: Option<serde_json::Value>,
    ) -> Result<(), String> {
        let Some(mut metadata) = change else {
            return Ok(());
        };
        metadata["resourceVersion"] = json!(node.metadata.resource_version);
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let params = PatchParams::default();
        let done = self.nodes().patch(&self.node_name, &params, &patch).await;
        done.map(drop).map_err(|error| chain(&error))
    }

    async fn replace(&self, own: &CSINode) -> Result<(), String> {
        let api = self.csi_nodes();
        let done = api
            .replace(&self.node_name, &PostParams::default(), own)
            .await;
        done.map(drop).map_err(|error| chain(&error))
    }

    /// Made when there is none; one of another node of that name goes.
    async fn own_csi_node(&self) -> Result<CSINode, String> {
        let node = self.node_object().await?;
        let uid = node.metadata.uid.unwrap_or_default();
        let (api, name) = (self.csi_nodes(), &self.node_name);
        let found = api.get_opt(name).await.map_err(|error| chain(&error))?;
        let Some(found) = found else {
            let new = change::csi_node(name, &uid);
            let made = api.create(&PostParams::default(), &new).await;
            return made.map_err(|error| chain(&error));
        };
        if change::is_of(&found, name, &uid) {
            return Ok(found);
        }
        let gone = api.delete(name, &DeleteParams::default()).await;
        gone.map_err(|error| chain(&error))?;
        Err(format!(
            "CSINode {name:?} was owned by different node, deleted it"
        ))
    }
}

/// The last error, once all tries have failed.
async fn again<T: Future<Output = Result<(), String>>>(
    change: impl Fn() -> T,
) -> Result<(), String> {
    let mut pause = PAUSE_FIRST;
    for _ in 1..TRIES {
        if change().await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(pause).await;
        pause *= PAUSE_FACTOR;
    }
    change().await
}
