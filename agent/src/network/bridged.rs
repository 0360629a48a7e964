//! The network that is made here: a bridge on the node, and a link into each sandbox.

use super::NetworkError;
use super::addresses::Addresses;
use super::bandwidth::Bandwidth;
use super::host_ports::HostPorts;
use super::link::{self, Bridge, Given, Links};
use super::subnet::Subnet;
use crate::runtime::{SandboxId, SandboxStatus};
use parking_lot::RwLock;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tokio::sync::watch;

#[derive(Debug)]
pub struct Bridged {
    links: Links,
    addresses: Addresses,
    bridge: RwLock<Option<(String, Bridge)>>,
    subnet: watch::Sender<Option<Subnet>>,
    /// What other nodes' pods can be sent, which may be less than the bridge's own.
    mtu_max: AtomicU32,
    pub host_ports: HostPorts,
    /// Pods are kept from the node's loopback address, so that it may lead to them.
    has_loopback: AtomicBool,
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
            subnet: watch::Sender::new(None),
            mtu_max: AtomicU32::new(u32::MAX),
            host_ports: HostPorts::default(),
            has_loopback: AtomicBool::new(false),
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
        self.subnet.send_replace(Some(subnet));
        if let Err(error) = crate::atomic_file::write(&self.cidr_file, cidr.as_bytes(), 0o644) {
            tracing::warn!(%error, "the podCIDR is not kept for a start without the server");
        }
        tracing::info!(cidr, "pods have their network");
        Ok(())
    }

    /// With the podCIDR that the node had last, if it had one.
    pub async fn use_kept_cidr(&self) -> Result<(), NetworkError> {
        match self.kept_cidr() {
            Some(cidr) => self.use_cidr(&cidr).await,
            None => Ok(()),
        }
    }

    /// Of the pods here, once there is a bridge.
    pub fn subnet(&self) -> Option<Subnet> {
        *self.subnet.borrow()
    }

    pub fn subscribe(&self) -> watch::Receiver<Option<Subnet>> {
        self.subnet.subscribe()
    }

    /// For pods that are attached from now on.
    pub fn set_mtu(&self, mtu: u32) {
        self.mtu_max.store(mtu, Ordering::Relaxed);
    }

    /// Pods are kept from the node's loopback address from now on.
    pub fn lead_loopback(&self) {
        if !self.has_loopback.swap(true, Ordering::AcqRel) {
            link::route_loopback_of_pods();
        }
    }

    pub fn kept_cidr(&self) -> Option<String> {
        let text = std::fs::read_to_string(&self.cidr_file).ok()?;
        Some(text.trim().to_owned())
    }

    pub fn is_ready(&self) -> bool {
        self.bridge.read().is_some()
    }

    /// Gives the sandbox its address and link, or finds them again.
    pub async fn attach(&self, sandbox: &SandboxStatus) -> Result<IpAddr, NetworkError> {
        let (id, namespace) = (&sandbox.id, sandbox.network_namespace.as_ref());
        let namespace = namespace.ok_or(NetworkError::NoNamespace)?;
        let mut bridge = self.bridge().ok_or(NetworkError::NotReady)?;
        bridge.mtu = bridge.mtu.min(self.mtu_max.load(Ordering::Relaxed));
        let bandwidth = Bandwidth::of(&sandbox.config.annotations)?;
        let address = self.addresses.allocate(id, bridge.subnet)?;
        let given = Given { address, bandwidth };
        self.links.attach(&bridge, &id.0, namespace, given).await?;
        // After the link is there: who sets it either sees the link or is seen here.
        if self.has_loopback.load(Ordering::Acquire) {
            self.links.route_loopback(&id.0);
        }
        self.host_ports.set(id, address, &sandbox.config.ports);
        Ok(address)
    }

    fn bridge(&self) -> Option<Bridge> {
        let bridge = self.bridge.read();
        bridge.as_ref().map(|(_, bridge)| bridge.clone())
    }

    /// Takes in the pods that a former agent left, once the network is there: they have their
    /// links, maybe of an older make.
    pub async fn adopt(&self, sandboxes: &[SandboxStatus]) {
        for SandboxStatus { id, config, .. } in sandboxes {
            if let Some(address) = self.addresses.of(id) {
                self.host_ports.set(id, address, &config.ports);
                // It may be detached meanwhile.
                if self.addresses.of(id).is_none() {
                    self.host_ports.remove(id);
                }
            }
        }
        self.host_ports.complete();
        let mut subnets = self.subscribe();
        if subnets.wait_for(Option::is_some).await.is_err() {
            return;
        }
        for sandbox in sandboxes {
            let (Some(bridge), Some(address)) = (self.bridge(), self.addresses.of(&sandbox.id))
            else {
                continue;
            };
            let Some(namespace) = &sandbox.network_namespace else {
                continue;
            };
            let adopting = self.links.adopt(&bridge, &sandbox.id.0, namespace, address);
            let adopted = adopting.await;
            if let Err(error) = adopted {
                let (pod, error) = (&sandbox.config.pod_name, crate::pods::chain(&error));
                tracing::warn!(
                    pod,
                    error,
                    "a pod of an earlier version goes around the node"
                );
            }
        }
    }

    /// Takes link and address back. No error when there are none.
    pub async fn detach(&self, sandbox: &SandboxId) -> Result<(), NetworkError> {
        self.host_ports.remove(sandbox);
        self.links.detach(&sandbox.0).await?;
        self.addresses.release(sandbox)?;
        // Who adopts it at the same time found its address before.
        self.host_ports.remove(sandbox);
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
