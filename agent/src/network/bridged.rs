//! The network that is made here: a bridge on the node, and a link into each sandbox.

use super::NetworkError;
use super::addresses::Addresses;
use super::bandwidth::Bandwidth;
use super::host_ports::HostPorts;
use super::link::{self, Bridge, Given, Links};
use super::policy::Policies;
use super::subnet::Subnet;
use crate::families::Families;
use crate::runtime::{SandboxId, SandboxStatus};
use parking_lot::RwLock;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// A pod that waits longer is told why, and tried again.
const HELD_MAX: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Bridged {
    links: Links,
    addresses: Addresses,
    bridge: RwLock<Option<(String, Bridge)>>,
    subnets: watch::Sender<Families<Subnet>>,
    /// What other nodes' pods can be sent, which may be less than the bridge's own.
    mtu_max: AtomicU32,
    pub host_ports: HostPorts,
    /// Absent where others see to policies.
    pub policies: OnceLock<Policies>,
    /// Pods may have links: nothing of theirs leaves in plain text that is not to.
    gate: watch::Sender<bool>,
    /// Pods are kept from the node's loopback address, so that it may lead to them.
    has_loopback: AtomicBool,
    /// The last `podCIDRs`, for a start without the server.
    cidr_file: PathBuf,
    /// All of it was taken away.
    is_down: AtomicBool,
    /// Held by who makes it, or takes it away.
    making: tokio::sync::Mutex<()>,
    /// Held while a pod is attached; nothing is taken away then.
    attaching: tokio::sync::RwLock<()>,
}

impl Bridged {
    pub fn open(directory: PathBuf) -> Result<Self, NetworkError> {
        Ok(Self {
            links: Links::open()?,
            cidr_file: directory.with_extension("cidr"),
            addresses: Addresses::open(directory)?,
            bridge: RwLock::new(None),
            subnets: watch::Sender::default(),
            mtu_max: AtomicU32::new(u32::MAX),
            host_ports: HostPorts::default(),
            policies: OnceLock::new(),
            gate: watch::Sender::new(true),
            has_loopback: AtomicBool::new(false),
            is_down: AtomicBool::new(false),
            making: tokio::sync::Mutex::default(),
            attaching: tokio::sync::RwLock::default(),
        })
    }

    /// Makes the bridge for the node's `podCIDRs`, with a comma between them; nothing to do when it
    /// is up.
    pub async fn use_cidrs(&self, cidrs: &str) -> Result<(), NetworkError> {
        let _alone = self.making.lock().await;
        let is_known = matches!(&*self.bridge.read(), Some((known, _)) if known == cidrs);
        if is_known {
            return Ok(());
        }
        let subnets = parse(cidrs)?;
        self.is_down.store(false, Ordering::Release);
        let bridge = self.links.make_bridge(subnets).await?;
        *self.bridge.write() = Some((cidrs.to_owned(), bridge));
        self.subnets.send_replace(subnets);
        self.keep_cidrs(cidrs)?;
        tracing::info!(cidrs, "pods have their network");
        Ok(())
    }

    /// For a start without the server.
    pub fn keep_cidrs(&self, cidrs: &str) -> Result<(), NetworkError> {
        parse(cidrs)?;
        if self.kept_cidrs().as_deref() == Some(cidrs) {
            return Ok(());
        }
        if let Err(error) = crate::atomic_file::write(&self.cidr_file, cidrs.as_bytes(), 0o644) {
            tracing::warn!(%error, "the podCIDR is not kept for a start without the server");
        }
        Ok(())
    }

    /// Sandboxes that have an address of it.
    pub fn has_pods(&self) -> bool {
        self.addresses.has_any()
    }

    pub fn is_down(&self) -> bool {
        self.is_down.load(Ordering::Acquire)
    }

    /// Takes away what was made for pods, once there are none; who else makes something for them
    /// learns of it by `subscribe` and `is_down`.
    pub async fn stand_down(&self) -> Result<(), NetworkError> {
        let _alone = self.making.lock().await;
        let _none_comes = self.attaching.write().await;
        if self.is_down() || self.has_pods() {
            return Ok(());
        }
        *self.bridge.write() = None;
        self.links.remove_named(link::BRIDGE).await?;
        self.is_down.store(true, Ordering::Release);
        self.subnets.send_replace(Families::default());
        Ok(())
    }

    /// Of the pods here; none before there is a bridge.
    pub fn subnets(&self) -> Families<Subnet> {
        *self.subnets.borrow()
    }

    pub fn subscribe(&self) -> watch::Receiver<Families<Subnet>> {
        self.subnets.subscribe()
    }

    /// For pods that are attached from now on.
    pub fn set_mtu(&self, mtu: u32) {
        self.mtu_max.store(mtu, Ordering::Relaxed);
    }

    /// Who holds it says when pods may have links; until then they wait.
    pub fn hold(&self) -> watch::Sender<bool> {
        self.gate.send_replace(false);
        self.gate.clone()
    }

    async fn held(&self) -> Result<(), NetworkError> {
        let mut gate = self.gate.subscribe();
        let open = gate.wait_for(|is_open| *is_open);
        match tokio::time::timeout(HELD_MAX, open).await {
            Ok(_) => Ok(()),
            Err(_) => Err(NetworkError::Held),
        }
    }

    /// Pods are kept from the node's loopback address from now on.
    pub fn lead_loopback(&self) {
        if !self.has_loopback.swap(true, Ordering::AcqRel) {
            link::route_loopback_of_pods();
        }
    }

    /// They are not.
    pub fn keep_loopback(&self) {
        self.has_loopback.store(false, Ordering::Release);
    }

    pub fn kept_cidrs(&self) -> Option<String> {
        let text = std::fs::read_to_string(&self.cidr_file).ok()?;
        Some(text.trim().to_owned())
    }

    pub fn is_ready(&self) -> bool {
        self.bridge.read().is_some()
    }

    /// Gives the sandbox its addresses and link, or finds them again.
    pub async fn attach(&self, sandbox: &SandboxStatus) -> Result<Families<IpAddr>, NetworkError> {
        let (id, namespace) = (&sandbox.id, sandbox.network_namespace.as_ref());
        let namespace = namespace.ok_or(NetworkError::NoNamespace)?;
        let _attaching = self.attaching.read().await;
        let mut bridge = self.bridge().ok_or(NetworkError::NotReady)?;
        self.held().await?;
        bridge.mtu = bridge.mtu.min(self.mtu_max.load(Ordering::Relaxed));
        let bandwidth = Bandwidth::of(&sandbox.config.annotations)?;
        let addresses = self.addresses.allocate(id, bridge.subnets)?;
        let given = Given {
            addresses,
            bandwidth,
        };
        if let Some(policies) = self.policies.get() {
            policies.attach(sandbox, addresses).await?;
        }
        self.links.attach(&bridge, &id.0, namespace, given).await?;
        // After the link is there: who sets it either sees the link or is seen here.
        if self.has_loopback.load(Ordering::Acquire) {
            self.links.route_loopback(&id.0);
        }
        self.host_ports.set(id, addresses, &sandbox.config.ports);
        Ok(addresses)
    }

    fn bridge(&self) -> Option<Bridge> {
        let bridge = self.bridge.read();
        bridge.as_ref().map(|(_, bridge)| bridge.clone())
    }

    /// Takes in the pods that a former agent left, once the network is there: they have their
    /// links, maybe of an older make.
    pub async fn adopt(&self, sandboxes: &[SandboxStatus]) {
        for SandboxStatus { id, config, .. } in sandboxes {
            let addresses = self.addresses.of(id);
            if !addresses.is_empty() {
                self.host_ports.set(id, addresses, &config.ports);
                // It may be detached meanwhile.
                if self.addresses.of(id).is_empty() {
                    self.host_ports.remove(id);
                }
            }
        }
        self.host_ports.complete();
        if !self.has_pods() {
            return;
        }
        let mut subnets = self.subscribe();
        let are_known = |subnets: &Families<Subnet>| !subnets.is_empty();
        if subnets.wait_for(are_known).await.is_err() {
            return;
        }
        for sandbox in sandboxes {
            let (Some(bridge), Some(namespace)) = (self.bridge(), &sandbox.network_namespace)
            else {
                continue;
            };
            let addresses = self.addresses_of(&sandbox.id);
            if addresses.is_empty() {
                continue;
            }
            let adopting = self
                .links
                .adopt(&bridge, &sandbox.id.0, namespace, addresses);
            let adopted = adopting.await;
            if let Err(error) = adopted {
                let (pod, error) = (&sandbox.config.pod_name, crate::error::chain(&error));
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
        if let Some(policies) = self.policies.get() {
            policies.detach(sandbox);
        }
        self.addresses.release(sandbox)?;
        // Who adopts it at the same time found its address before.
        self.host_ports.remove(sandbox);
        Ok(())
    }

    /// In the order of the node's podCIDRs, as they were given.
    pub fn addresses_of(&self, sandbox: &SandboxId) -> Families<IpAddr> {
        let known = self.addresses.of(sandbox);
        let subnets = self.subnets();
        let in_order = subnets
            .iter()
            .filter_map(|subnet| known.of(subnet.is_ipv4()));
        in_order.chain(known.iter()).collect()
    }

    /// Takes back the addresses of sandboxes that a crash left without one.
    pub fn reclaim(&self, alive: &BTreeSet<SandboxId>) -> Result<(), NetworkError> {
        Ok(self.addresses.reclaim(alive)?)
    }
}

fn parse(cidrs: &str) -> Result<Families<Subnet>, NetworkError> {
    let parsed = cidrs
        .split(',')
        .map(|cidr| Subnet::parse(cidr).ok_or_else(|| NetworkError::Subnet(cidr.to_owned())));
    parsed.collect()
}
