//! Drivers of volumes (the Container Storage Interface): other programs of the machine, asked
//! through their sockets.
//!
//! What was asked of a driver is on disk before it is asked, and until it was undone: an agent that
//! starts anew, or an operation whose end nobody knows, leaves nothing behind. In memory are only
//! the registered drivers, which volumes this process has staged, and what the node's status says
//! to be in use. One operation a volume at a time.

mod attach; // Waits for a controller.
mod data; // What is on disk of an operation.
pub mod driver; // What a driver's object says. Pure.
mod expand;
mod messages;
mod node; // Calls.
mod node_info; // What the server is told of the node's drivers.
mod places; // Pure. Start reading here.
mod publish; // For one pod.
mod registration; // Sockets come and go.
mod stage; // For all pods of the node.
mod stats;
mod versions; // Pure.
pub mod wanted; // Questions. Pure.

pub use attach::{Waited, wait as wait_attached};
pub use driver::{Driver, Lifecycle};
pub use publish::Publication;
pub use stats::Usage;
pub use wanted::Wanted;

use crate::volumes::Refusal;

use crate::grpc::{Channel, Endpoint};
use crate::pods::VolumeWrites;
use crate::volumes::Kept;
use coracle_client::Client;
use k8s_openapi::api::core::v1::{Secret, SecretReference};
use k8s_openapi::api::storage::v1::CSIDriver;
use kube::Api;
use node::Node;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Notify;
use versions::Version;

/// Of an answer; the default of Go's library, which drivers are written for.
const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// As upstream writes it before what it says itself.
fn said(text: impl std::fmt::Display) -> String {
    format!("kubernetes.io/csi: {text}")
}

#[derive(Clone, Debug)]
struct Registered {
    channel: Arc<Channel>,
    version: Version,
}

pub struct Csi {
    client: Client,
    node_name: String,
    /// The agent's own directory, and the same as drivers are told of it.
    root: PathBuf,
    shown: PathBuf,
    drivers: Mutex<BTreeMap<String, Registered>>,
    /// To register or drop a driver, by its name.
    registrations: VolumeWrites,
    /// By the place where a volume is staged.
    turns: VolumeWrites,
    /// Places of volumes that this process has staged.
    staged: Mutex<HashSet<PathBuf>>,
    /// Names of volumes that a controller attaches, by the uid of the pods that want them.
    in_use: Mutex<BTreeMap<String, BTreeSet<String>>>,
    in_use_changed: Notify,
}

impl std::fmt::Debug for Csi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Csi").finish_non_exhaustive()
    }
}

/// Of a pod: the files that say what was published for it.
pub fn published(pod_directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(places::published_all(pod_directory));
    let entries = entries.into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path().join(data::FILE));
    files.filter(|file| file.exists()).collect()
}

impl Csi {
    /// `root` is the agent's own directory, `shown` how drivers know it.
    pub fn new(client: Client, node_name: &str, root: &Path, shown: &Path) -> Self {
        let csi = Self {
            client,
            node_name: node_name.to_owned(),
            root: root.to_owned(),
            shown: shown.to_owned(),
            drivers: Mutex::default(),
            registrations: VolumeWrites::default(),
            turns: VolumeWrites::default(),
            staged: Mutex::default(),
            in_use: Mutex::default(),
            in_use_changed: Notify::new(),
        };
        csi.recall();
        csi
    }

    /// What former agents said to be in use is, until it is let go.
    fn recall(&self) {
        let pods = self.root.join(crate::pods::PODS);
        for entry in fs::read_dir(pods).into_iter().flatten().flatten() {
            let uid = entry.file_name().to_string_lossy().into_owned();
            match Kept::load(&entry.path()) {
                Ok(kept) => self.note_in_use(&uid, &kept),
                Err(error) => tracing::warn!(%error, "what volumes a pod has is not known"),
            }
        }
    }

    /// A path as the driver's container has it.
    fn shown(&self, path: &Path) -> String {
        let shown = match path.strip_prefix(&self.root) {
            Ok(inner) => self.shown.join(inner),
            Err(_) => path.to_owned(),
        };
        shown.display().to_string()
    }

    fn node(&self, driver: &str) -> Result<Node, String> {
        let drivers = self.drivers.lock();
        let Some(known) = drivers.get(driver) else {
            return Err(format!(
                "driver name {driver} not found in the list of registered CSI drivers"
            ));
        };
        Ok(Node::new(known.channel.clone()))
    }

    fn channel(endpoint: Endpoint) -> Arc<Channel> {
        Arc::new(Channel::new(endpoint, MESSAGE_BYTES_MAX))
    }

    /// What the server says of a driver.
    pub async fn driver(&self, name: &str) -> Result<Driver, String> {
        let api: Api<CSIDriver> = Api::all(self.client.clone());
        let found = api.get_opt(name).await;
        let found = found.map_err(|error| crate::error::chain(&error))?;
        Ok(Driver::new(name, found))
    }

    /// Nothing for no reference.
    async fn secrets(
        &self,
        reference: Option<&SecretReference>,
    ) -> Result<BTreeMap<String, String>, String> {
        let Some(reference) = reference else {
            return Ok(BTreeMap::new());
        };
        let name = reference.name.as_deref().unwrap_or_default();
        let namespace = reference.namespace.as_deref().unwrap_or_default();
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let secret = api.get(name).await.map_err(|error| {
            let error = crate::error::chain(&error);
            said(format_args!(
                "failed to find the secret {name} in the namespace {namespace} with error: {error}"
            ))
        })?;
        let data = secret.data.unwrap_or_default().into_iter();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(data.map(|(key, value)| (key, text(value.0))).collect())
    }
}

/// As upstream names a secret in errors.
fn secret_name(reference: Option<&SecretReference>) -> String {
    let part = |part: Option<&String>| part.cloned().unwrap_or_default();
    let namespace = part(reference.and_then(|one| one.namespace.as_ref()));
    let name = part(reference.and_then(|one| one.name.as_ref()));
    format!("{namespace}/{name}")
}

#[cfg(test)]
mod tests;
