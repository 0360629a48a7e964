//! The pods' network on this node: a gateway, an address a sandbox, a veth pair into it, and ways
//! to other nodes; or what plugins make. Or that of a runtime that makes it, of which nothing is known
//! here but whether it is ready.
//!
//! Addresses come from the Node's `podCIDR`; until it is known the network is not ready. All is
//! done over netlink, and repeated after a crash without harm.

mod addresses; // Which sandbox has which address, on disk.
mod bandwidth; // What a pod may send and be sent.
mod bridged; // Made here.
mod cni; // Made by plugins.
mod firewall; // Of others, that keep pods from the rest.
mod host_ports; // Ports of the node that lead to pods.
mod link; // Bridge, veth and routes, by netlink.
mod masquerade; // Of what leaves pods for no pod.
#[allow(dead_code, unused_imports)] // Services and policy are its users.
pub mod nft; // The kernel's packet filter.
mod own; // Which of the two.
mod pace; // When the table is written.
mod peers; // Ways to other nodes.
pub mod policy; // Which connections pods may have.
pub mod services; // Where their addresses lead.
mod stale; // Chains that nothing needs any more.
mod subnet;
pub mod table; // Base chains, and who is behind them.
#[cfg(test)]
pub mod testing;
pub mod view; // What is known of Services.
mod wireguard; // What other nodes' pods are sent, encrypted.

pub use addresses::AddressError;
pub use cni::{CniError, Resolvers, Settings as CniSettings};
pub use link::{LinkError, Links, is_of_ours, machine_addresses};
pub use peers::changes as link_changes;

use crate::families::Families;
use crate::node::OwnAddresses;
use crate::runtime::{SandboxId, SandboxStatus};
use coracle_client::Client;
use coracle_client::clock::Clock;
use coracle_client::events::Recorder;
use firewall::Firewall;
use own::Own;
use parking_lot::RwLock;
use peers::Peers;
use policy::Policies;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use subnet::Subnet;
use table::{Table, TableError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use view::View;
use wireguard::{Following, Guard};

#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    #[error("the node has no podCIDR yet")]
    NotReady,
    #[error("it is not sure yet that nothing of pods leaves in plain text")]
    Held,
    #[error("the sandbox has no network namespace")]
    NoNamespace,
    #[error("the runtime gave the sandbox no address")]
    NoAddress,
    #[error("podCIDR {0:?} is no network")]
    Subnet(String),
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error(transparent)]
    Bandwidth(#[from] bandwidth::BandwidthError),
    #[error(transparent)]
    Cni(#[from] CniError),
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Policy(#[from] policy::PolicyError),
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Takes all sandboxes off the networks that plugins made. `directory` is the one that the network
/// was opened with; no agent may run.
pub async fn detach_from_plugins(directory: &Path) -> std::io::Result<()> {
    cni::Cni::wipe(directory.with_extension("cni")).await
}

/// Takes all that was made away from the namespace of the calling process.
pub async fn remove_all() -> Result<(), NetworkError> {
    table::remove().await?;
    Ok(link::remove_all().await?)
}

#[derive(Debug)]
pub struct Network(Kind);

#[derive(Debug)]
enum Kind {
    Own(Arc<Own>),
    OfRuntime(RwLock<Told>),
}

/// What the runtime was told, and what it says.
#[derive(Debug, Default)]
struct Told {
    cidrs: String,
    problem: Option<String>,
}

/// What the network needs of the node it is on.
pub struct Site {
    pub client: Client,
    /// Where pods of other nodes are; None where the server lets this node see them.
    pub pod_networks: Option<Vec<String>>,
    pub clock: Clock,
    /// The sandboxes that a former agent left.
    pub left: Vec<SandboxStatus>,
    pub recorder: Recorder,
    pub node_name: String,
    /// By which other nodes know it.
    pub addresses: OwnAddresses,
    /// Where the API server is, if it is named by an address.
    pub server: Option<IpAddr>,
    pub view: View,
    /// The one that the network was opened with.
    pub directory: PathBuf,
    pub tasks: TaskTracker,
    pub stop: CancellationToken,
}

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Site");
        debug
            .field("node_name", &self.node_name)
            .finish_non_exhaustive()
    }
}

impl Network {
    /// `directory` keeps the addresses. Needs a tokio runtime.
    pub fn open(directory: PathBuf, plugins: CniSettings) -> Result<Self, NetworkError> {
        let own = Own::open(directory, plugins)?;
        Ok(Self(Kind::Own(Arc::new(own))))
    }

    /// The runtime's own; nothing is known of it yet.
    pub fn of_runtime() -> Self {
        Self(Kind::OfRuntime(RwLock::default()))
    }

    /// Makes the bridge for the node's `podCIDRs`, with a comma between them; nothing to do when it
    /// is up. True when a runtime that makes the network is to be told.
    pub async fn use_cidrs(&self, cidrs: &str) -> Result<bool, NetworkError> {
        match &self.0 {
            Kind::Own(own) => own.use_cidrs(cidrs).await.map(|()| false),
            Kind::OfRuntime(told) => {
                let mut told = told.write();
                let is_new = told.cidrs != cidrs;
                cidrs.clone_into(&mut told.cidrs);
                Ok(is_new)
            }
        }
    }

    /// The runtime did not hear of it: it is to be told again.
    pub fn untold(&self) {
        if let Kind::OfRuntime(told) = &self.0 {
            told.write().cidrs.clear();
        }
    }

    /// With the podCIDRs that the node had last, if it had some.
    pub async fn use_kept_cidrs(&self) -> Result<(), NetworkError> {
        match &self.0 {
            Kind::Own(own) => own.use_kept_cidrs().await,
            Kind::OfRuntime(_) => Ok(()),
        }
    }

    /// The podCIDRs that the node had last, if it had some.
    pub fn kept_cidrs(&self) -> Option<String> {
        match &self.0 {
            Kind::Own(own) => own.bridged.kept_cidrs(),
            Kind::OfRuntime(_) => None,
        }
    }

    /// What the runtime says of the network that it makes.
    pub fn heard(&self, problem: Option<String>) {
        if let Kind::OfRuntime(told) = &self.0 {
            told.write().problem = problem;
        }
    }

    /// Why no pod can have an address yet, in upstream's words.
    pub fn problem(&self) -> Option<String> {
        match &self.0 {
            Kind::Own(own) => own
                .problem()
                .map(|why| crate::node::network_not_ready(&why)),
            Kind::OfRuntime(told) => told.read().problem.clone(),
        }
    }

    /// Gives the sandbox its addresses and link, or finds them again. None on the host's network.
    pub async fn attach(
        &self,
        sandbox: &SandboxStatus,
        resolvers: &Resolvers,
    ) -> Result<Families<IpAddr>, NetworkError> {
        if sandbox.config.host_network {
            return Ok(Families::default());
        }
        match &self.0 {
            Kind::Own(own) => own.attach(sandbox, resolvers).await,
            Kind::OfRuntime(_) if sandbox.addresses.is_empty() => Err(NetworkError::NoAddress),
            Kind::OfRuntime(_) => Ok(sandbox.addresses),
        }
    }

    /// Takes link and address back. No error when there are none.
    pub async fn detach(&self, sandbox: &SandboxId) -> Result<(), NetworkError> {
        match &self.0 {
            Kind::Own(own) => own.detach(sandbox).await,
            Kind::OfRuntime(_) => Ok(()),
        }
    }

    pub fn addresses_of(&self, sandbox: &SandboxStatus) -> Families<IpAddr> {
        match &self.0 {
            Kind::Own(own) => own.addresses_of(&sandbox.id),
            Kind::OfRuntime(_) => sandbox.addresses,
        }
    }

    /// Others make it.
    pub fn is_of_runtime(&self) -> bool {
        matches!(self.0, Kind::OfRuntime(_))
    }

    /// Takes in what a former agent left running.
    pub async fn adopt(&self, sandboxes: &[SandboxStatus]) {
        if let Kind::Own(own) = &self.0 {
            own.bridged.adopt(sandboxes).await;
        }
    }

    /// Begins to look after plugins, until `stop`.
    pub fn tend(&self, tasks: &TaskTracker, stop: &CancellationToken) {
        if let Kind::Own(own) = &self.0 {
            tasks.spawn(own.cni.clone().watch(stop.clone()));
            tasks.spawn(own.cni.clone().sweep(stop.clone()));
            tasks.spawn(own.clone().settle(stop.clone()));
        }
    }

    /// Begins what goes on beside the pods, until the site's stop.
    pub fn begin(&self, site: Site, table: &Table) {
        let Kind::Own(own) = &self.0 else {
            return;
        };
        let bridged = &own.bridged;
        let knows_nodes = site.pod_networks.is_none();
        let told = |texts: Vec<String>| {
            texts
                .iter()
                .filter_map(|text| Subnet::parse(text))
                .collect()
        };
        let (networks, of_all) = watch::channel(site.pod_networks.map(told));
        let stop = &site.stop;
        let masquerading = masquerade::run(table.clone(), bridged.clone(), of_all, stop.clone());
        site.tasks.spawn(masquerading);
        let firewall = Firewall {
            table: table.clone(),
            bridged: bridged.clone(),
            recorder: site.recorder.clone(),
            node_name: site.node_name.clone(),
        };
        site.tasks.spawn(firewall.run(stop.clone()));
        let (of_ports, of_table, of_stop) = (bridged.clone(), table.clone(), stop.clone());
        site.tasks
            .spawn(async move { of_ports.host_ports.run(of_table, of_stop).await });
        if !knows_nodes {
            return;
        }
        let setting = policy::Setting {
            client: site.client.clone(),
            table: table.clone(),
            view: site.view.clone(),
            clock: site.clock,
            recorder: site.recorder.clone(),
            node_name: site.node_name.clone(),
            file: site.directory.with_extension("policy"),
        };
        let policies = Policies::begin(setting, bridged, &site.left, &site.tasks, stop);
        if bridged.policies.set(policies).is_err() {
            tracing::error!("the network began twice");
        }
        let told = Following::open(
            site.view.clone(),
            site.directory.with_extension("encryption"),
        );
        let (guarded, ranges) = watch::channel(None);
        let guard = Guard {
            table: table.clone(),
            told: told.subscribe(),
            guarded: ranges,
            gate: bridged.hold(),
        };
        let peers = Peers {
            bridged: bridged.clone(),
            node_name: site.node_name,
            addresses: site.addresses,
            server: site.server,
            view: site.view,
            recorder: site.recorder,
            file: site.directory.with_extension("peers"),
            networks,
            encryption: told.subscribe(),
            key_file: site.directory.with_extension("wireguard"),
            guarded,
        };
        site.tasks.spawn(guard.run(site.stop.clone()));
        site.tasks.spawn(told.run(site.stop.clone()));
        site.tasks.spawn(peers.run(site.client, site.stop));
    }

    /// Takes back the addresses of sandboxes that a crash left without one.
    pub fn reclaim(&self, alive: &BTreeSet<SandboxId>) -> Result<(), NetworkError> {
        match &self.0 {
            Kind::Own(own) => own.reclaim(alive),
            Kind::OfRuntime(_) => Ok(()),
        }
    }
}
