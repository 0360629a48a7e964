//! The pods' network on this node: a bridge, an address a sandbox, a veth pair into it. Or that of
//! a runtime that makes it, of which nothing is known here but whether it is ready.
//!
//! Addresses come from the Node's `podCIDR`; until it is known the network is not ready. All is
//! done over netlink, and repeated after a crash without harm. What masquerades and what lies
//! between nodes is not done here.

mod addresses; // Which sandbox has which address, on disk.
mod bridged; // Made here.
mod link; // Bridge, veth and routes, by netlink.
#[allow(dead_code, unused_imports)] // The parts that follow are its users.
pub mod nft; // The kernel's packet filter.
mod subnet;
#[cfg(test)]
mod testing;

pub use addresses::AddressError;
pub use link::{BRIDGE, LinkError, remove_all};

use crate::runtime::{SandboxId, SandboxStatus};
use bridged::Bridged;
use parking_lot::RwLock;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    #[error("the node has no podCIDR yet")]
    NotReady,
    #[error("the sandbox has no network namespace")]
    NoNamespace,
    #[error("the runtime gave the sandbox no address")]
    NoAddress,
    #[error("podCIDR {0:?} is no network")]
    Subnet(String),
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error(transparent)]
    Link(#[from] LinkError),
}

#[derive(Debug)]
pub struct Network(Kind);

#[derive(Debug)]
enum Kind {
    Bridged(Box<Bridged>),
    OfRuntime(RwLock<Told>),
}

/// What the runtime was told, and what it says.
#[derive(Debug, Default)]
struct Told {
    cidr: String,
    problem: Option<String>,
}

impl Network {
    /// `directory` keeps the addresses. Needs a tokio runtime.
    pub fn open(directory: PathBuf) -> Result<Self, NetworkError> {
        let bridged = Bridged::open(directory)?;
        Ok(Self(Kind::Bridged(Box::new(bridged))))
    }

    /// The runtime's own; nothing is known of it yet.
    pub fn of_runtime() -> Self {
        Self(Kind::OfRuntime(RwLock::default()))
    }

    /// Makes the bridge for the node's `podCIDR`; nothing to do when it is up. True when a runtime
    /// that makes the network is to be told.
    pub async fn use_cidr(&self, cidr: &str) -> Result<bool, NetworkError> {
        match &self.0 {
            Kind::Bridged(bridged) => bridged.use_cidr(cidr).await.map(|()| false),
            Kind::OfRuntime(told) => {
                let mut told = told.write();
                let is_new = told.cidr != cidr;
                cidr.clone_into(&mut told.cidr);
                Ok(is_new)
            }
        }
    }

    /// The runtime did not hear of it: it is to be told again.
    pub fn untold(&self) {
        if let Kind::OfRuntime(told) = &self.0 {
            told.write().cidr.clear();
        }
    }

    /// With the podCIDR that the node had last, if it had one.
    pub async fn use_kept_cidr(&self) -> Result<(), NetworkError> {
        match &self.0 {
            Kind::Bridged(bridged) => bridged.use_kept_cidr().await,
            Kind::OfRuntime(_) => Ok(()),
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
            Kind::Bridged(bridged) => {
                (!bridged.is_ready()).then(|| crate::node::NETWORK_NOT_READY.to_owned())
            }
            Kind::OfRuntime(told) => told.read().problem.clone(),
        }
    }

    /// Gives the sandbox its address and link, or finds them again. None on the host's network.
    pub async fn attach(&self, sandbox: &SandboxStatus) -> Result<Option<IpAddr>, NetworkError> {
        if sandbox.config.host_network {
            return Ok(None);
        }
        let address = match &self.0 {
            Kind::Bridged(bridged) => bridged.attach(sandbox).await?,
            Kind::OfRuntime(_) => sandbox.address.ok_or(NetworkError::NoAddress)?,
        };
        Ok(Some(address))
    }

    /// Takes link and address back. No error when there are none.
    pub async fn detach(&self, sandbox: &SandboxId) -> Result<(), NetworkError> {
        match &self.0 {
            Kind::Bridged(bridged) => bridged.detach(sandbox).await,
            Kind::OfRuntime(_) => Ok(()),
        }
    }

    pub fn address_of(&self, sandbox: &SandboxStatus) -> Option<IpAddr> {
        match &self.0 {
            Kind::Bridged(bridged) => bridged.address_of(&sandbox.id),
            Kind::OfRuntime(_) => sandbox.address,
        }
    }

    /// Takes back the addresses of sandboxes that a crash left without one.
    pub fn reclaim(&self, alive: &BTreeSet<SandboxId>) -> Result<(), NetworkError> {
        match &self.0 {
            Kind::Bridged(bridged) => bridged.reclaim(alive),
            Kind::OfRuntime(_) => Ok(()),
        }
    }
}
