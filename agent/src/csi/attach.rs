//! Volumes that a controller attaches to the node: the node says first that it uses them, then
//! waits until the controller has noted them as attached.

use super::{Csi, places};
use crate::volumes::{Found, Kept, OfDriver};
use coracle_client::informer::Informer;
use k8s_openapi::api::core::v1::{Node, NodeStatus};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::Api;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Upstream's: how long one try waits, and how often it looks at what it knows of the node.
const WAIT_MAX: Duration = Duration::from_secs(123);
const LOOK_EVERY: Duration = Duration::from_millis(300);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Waited {
    Attached,
    /// The pod is not wanted any more.
    Halted,
    TimedOut,
}

impl Csi {
    /// From here on the node's status names the pod's volumes that are attached.
    pub fn note_in_use(&self, uid: &str, kept: &Kept) {
        let attached = |found: &Found| found.driver.clone().filter(|driver| driver.is_attached);
        let names = kept.0.values().filter_map(attached);
        let names: BTreeSet<String> = names.map(|driver| driver.unique_name()).collect();
        if !names.is_empty() {
            self.in_use.lock().insert(uid.to_owned(), names);
            self.in_use_changed.notify_one();
        }
    }

    /// The pod has let go of all of its volumes.
    pub fn forget_in_use(&self, uid: &str) {
        if self.in_use.lock().remove(uid).is_some() {
            self.in_use_changed.notify_one();
        }
    }

    /// As the node's status has it.
    pub fn in_use(&self) -> Vec<String> {
        let in_use = self.in_use.lock();
        let all: BTreeSet<&String> = in_use.values().flatten().collect();
        all.into_iter().cloned().collect()
    }

    pub async fn in_use_changed(&self) {
        self.in_use_changed.notified().await;
    }

    /// What the controller tells the driver by way of the attachment; errors in upstream's words.
    pub async fn attachment(&self, of: &OfDriver) -> Result<BTreeMap<String, String>, String> {
        let (handle, name) = (
            &of.handle,
            places::attachment(&of.handle, &of.driver, &self.node_name),
        );
        let api: Api<VolumeAttachment> = Api::all(self.client.clone());
        let found = api.get(&name).await.map_err(|error| {
            let error = crate::error::chain(&error);
            format!("volume {handle} has GET error for volume attachment {name}: {error}")
        })?;
        check(&found, handle, &name)?;
        let status = found.status.unwrap_or_default();
        Ok(status.attachment_metadata.unwrap_or_default())
    }
}

fn check(found: &VolumeAttachment, handle: &str, name: &str) -> Result<(), String> {
    if found.metadata.deletion_timestamp.is_some() {
        return Err("volume attachment is being deleted".to_owned());
    }
    let status = found.status.as_ref();
    if status.is_some_and(|status| status.attached) {
        return Ok(());
    }
    let error = status.and_then(|status| status.attach_error.as_ref());
    let error = error.and_then(|error| error.message.clone());
    Err(error
        .unwrap_or_else(|| format!("volume {handle} is not attached for volume attachment {name}")))
}

/// Looks at the node as it is known here: no question to the server.
pub async fn wait(node: &Informer<Node>, names: &[String], halt: &CancellationToken) -> Waited {
    let attached = async {
        loop {
            let nodes = node.list();
            let status = nodes.first().and_then(|node| node.status.as_ref());
            if status.is_some_and(|status| names.iter().all(|name| is_attached(status, name))) {
                return;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::select! {
        () = halt.cancelled() => Waited::Halted,
        done = tokio::time::timeout(WAIT_MAX, attached) => match done {
            Ok(()) => Waited::Attached,
            Err(_) => Waited::TimedOut,
        }
    }
}

/// The controller has seen that the node uses it: it will not be detached before the node lets go.
fn is_attached(status: &NodeStatus, name: &str) -> bool {
    let mut in_use = status.volumes_in_use.iter().flatten();
    let mut attached = status.volumes_attached.iter().flatten();
    in_use.any(|one| one == name) && attached.any(|one| one.name == name)
}

#[cfg(test)]
mod tests;
