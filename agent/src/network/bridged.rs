//! The network that is made here: a bridge on the node, and a link into each sandbox.

use super::NetworkError;
use super::addresses::Addresses;
use super::link::{Bridge, Links};
use super::subnet::Subnet;
use crate::runtime::{SandboxId, SandboxStatus};
use parking_lot::RwLock;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug)]
pub struct Bridged {
    links: Links,
    addresses: Addresses,
    bridge: RwLock<Option<(String, Bridge)>>,
    /// The last `podCIDR`, for a start without the server.
    cidr_file: PathBuf,
}

impl Bridged {
    pub fn open(directory: PathBuf) -> Result<Self, NetworkError> {
        Ok(Self {
            links: Links::open()?,
            cidr_file: directory.with_extension("cidr"),
            addresses: Addresses::open(directory)?,
            bridge: RwLock::new(None),
        })
    }

    /// Makes the bridge for the node's `podCIDR`; nothing to do when it is up.
    pub async fn use_cidr(&self, cidr: &str) -> Result<(), NetworkError> {
        let is_known = matches!(&*self.bridge.read(), Some((known, _)) if known == cidr);
        if is_known {
            return Ok(());
        }
        let subnet = Subnet::parse(cidr).ok_or_else(|| NetworkError::Subnet(cidr.to_owned()))?;
        let bridge = self.links.make_bridge(subnet).await?;
        *self.bridge.write() = Some((cidr.to_owned(), bridge));
        if let Err(error) = crate::atomic_file::write(&self.cidr_file, cidr.as_bytes(), 0o644) {
            tracing::warn!(%error, "the podCIDR is not kept for a start without the server");
        }
        tracing::info!(cidr, "pods have their network");
        Ok(())
    }

    /// With the podCIDR that the node had last, if it had one.
    pub async fn use_kept_cidr(&self) -> Result<(), NetworkError> {
        match std::fs::read_to_string(&self.cidr_file) {
            Ok(cidr) => self.use_cidr(cidr.trim()).await,
            Err(_) => Ok(()),
        }
    }

    pub fn is_ready(&self) -> bool {
        self.bridge.read().is_some()
    }

    /// Gives the sandbox its address and link, or finds them again.
    pub async fn attach(&self, sandbox: &SandboxStatus) -> Result<IpAddr, NetworkError> {
        let (id, namespace) = (&sandbox.id, sandbox.network_namespace.as_ref());
        let namespace = namespace.ok_or(NetworkError::NoNamespace)?;
        let bridge = self
            .bridge
            .read()
            .as_ref()
            .map(|(_, bridge)| bridge.clone());
        let bridge = bridge.ok_or(NetworkError::NotReady)?;
        let address = self.addresses.allocate(id, bridge.subnet)?;
        self.links
            .attach(&bridge, &id.0, namespace, address)
            .await?;
        Ok(address)
    }

    /// Takes link and address back. No error when there are none.
    pub async fn detach(&self, sandbox: &SandboxId) -> Result<(), NetworkError> {
        self.links.detach(&sandbox.0).await?;
        self.addresses.release(sandbox)?;
        Ok(())
    }

    pub fn address_of(&self, sandbox: &SandboxId) -> Option<IpAddr> {
        self.addresses.of(sandbox)
    }

    /// Takes back the addresses of sandboxes that a crash left without one.
    pub fn reclaim(&self, alive: &BTreeSet<SandboxId>) -> Result<(), NetworkError> {
        Ok(self.addresses.reclaim(alive)?)
    }
}
