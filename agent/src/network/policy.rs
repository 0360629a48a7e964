//! NetworkPolicy: which connections of this node's pods are let pass, in the kernel's packet filter.
//!
//! Decides from what the server tells of policies, namespaces and pods (`plan`), keeps what the
//! kernel has (`state`) and writes the difference (`enforcer`, by `kernel`). A pod's rules are in
//! the kernel before it has a link. Never looks at a packet itself, and touches no chain but its own.

mod decode; // From what the server tells.
mod enforcer; // The loop.
mod feed; // What the server tells.
mod kept; // On disk.
mod kernel; // The kernel's messages.
mod labels; // Labels and selectors.
mod plan; // What one pod is let do. Start reading here.
mod record; // Policies and pods.
mod shared; // Who waits for whom.
mod state; // What is known, and what the kernel has of it.
mod voice; // What the node's owner hears.

use super::bridged::Bridged;
use super::link::link_name;
use super::table::Table;
use super::view::{View, key};
use crate::families::Families;
use crate::runtime::{SandboxConfig, SandboxId, SandboxStatus};
use coracle_api::policy_feed::NamedPort;
use coracle_client::Client;
use coracle_client::clock::Clock;
use coracle_client::events::Recorder;
use enforcer::Enforcer;
use labels::Labels;
use record::Pod;
use shared::Shared;
use state::{Here, Link};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use voice::Voice;

/// For the kernel to have the rules of a pod: longer than a start waits for the server.
const ATTACH_MAX: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("the pod's NetworkPolicies are not enforced yet")]
    NotEnforced,
    #[error("the server does not say which NetworkPolicies there are")]
    Unknown,
}

/// Cheap to clone; clones share.
#[derive(Clone, Debug)]
pub struct Policies(Arc<Shared>);

/// What it takes to enforce them.
pub struct Setting {
    pub client: Client,
    pub table: Table,
    pub view: View,
    pub clock: Clock,
    pub recorder: Recorder,
    pub node_name: String,
    /// Where what is known is kept.
    pub file: PathBuf,
}

impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Setting");
        debug.field("file", &self.file).finish_non_exhaustive()
    }
}

impl Policies {
    /// Begins with the pods that a former agent left. Enforces until `stop`; what is in the kernel
    /// then stays.
    pub fn begin(
        setting: Setting,
        bridged: &Bridged,
        left: &[SandboxStatus],
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Self {
        let file = setting.file;
        let (state, source) = kept::open(&file);
        let shared = Arc::new(Shared::new(state, source));
        for sandbox in left {
            let addresses = bridged.addresses_of(&sandbox.id);
            if !addresses.is_empty() {
                let here = here(&sandbox.config, addresses);
                shared.set_here(&link(&sandbox.id), Some(here));
            }
        }
        tasks.spawn(kept::run(shared.clone(), file, stop.clone()));
        let voice = Voice::new(setting.recorder, &setting.node_name);
        let (client, says) = (setting.client, voice.clone());
        tasks.spawn(feed::follow(shared.clone(), client, says, stop.clone()));
        let enforcer = Enforcer {
            shared: shared.clone(),
            table: setting.table,
            view: setting.view,
            clock: setting.clock,
            voice,
        };
        tasks.spawn(enforcer.run(stop.clone()));
        Self(shared)
    }

    /// Returns when the kernel has the rules of the pod, which has no link yet.
    pub async fn attach(
        &self,
        sandbox: &SandboxStatus,
        addresses: Families<IpAddr>,
    ) -> Result<(), PolicyError> {
        let here = here(&sandbox.config, addresses);
        let number = self.0.set_here(&link(&sandbox.id), Some(here));
        let applied = tokio::time::timeout(ATTACH_MAX, self.0.applied(number));
        applied.await.map_err(|_| match self.0.is_held() {
            true => PolicyError::Unknown,
            false => PolicyError::NotEnforced,
        })
    }

    /// Its link is gone.
    pub fn detach(&self, sandbox: &SandboxId) {
        self.0.set_here(&link(sandbox), None);
    }
}

fn link(sandbox: &SandboxId) -> Link {
    link_name(&sandbox.0).into()
}

fn here(config: &SandboxConfig, addresses: Families<IpAddr>) -> Here {
    // The runtime is told some more than the pod says.
    let labels = config.labels.iter();
    let labels = labels.filter(|(key, _)| !key.starts_with("io.kubernetes.pod."));
    let labels = Labels::of(labels.map(|(key, value)| (&**key, &**value)));
    let ports = decode::named_ports(&config.named_ports);
    Here {
        key: key(&config.pod_namespace, &config.pod_name),
        pod: Pod {
            uid: config.pod_uid.parse().unwrap_or_default(),
            labels,
            addresses: addresses.iter().collect(),
            ports,
        },
    }
}

/// Of a container that runs as long as its pod.
pub fn named_port(port: &k8s_openapi::api::core::v1::ContainerPort) -> Option<NamedPort> {
    let (name, protocol) = (port.name.as_deref(), port.protocol.as_deref());
    NamedPort::new(
        name?,
        protocol.unwrap_or_default(),
        port.container_port.into(),
    )
}
