//! Whether a network stays. Pure.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::networking::v1::{IPAddress, ServiceCIDR};

use super::prefix::Prefix;

pub(super) const CONDITION: &str = "Ready";
const MANAGER_LABEL: &str = "ipaddress.kubernetes.io/managed-by";
const MANAGER: &str = "ipallocator.k8s.io";
/// API servers that have not yet heard of the deletion may give out another address.
const GRACE: SignedDuration = SignedDuration::from_secs(10);

/// What the condition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub status: &'static str,
    pub reason: &'static str,
    pub message: &'static str,
}

pub(super) const READY: Told = Told {
    status: "True",
    reason: "",
    message: "Kubernetes Service CIDR is ready",
};
pub(super) const IN_USE: Told = Told {
    status: "False",
    reason: "Terminating",
    message: "There are still IPAddresses referencing the ServiceCIDR, please remove them or \
              create a new ServiceCIDR",
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Keep,
    /// Addresses need it.
    Wait,
    LetGoIn(Duration),
}

pub(super) fn plan(
    network: &ServiceCIDR,
    all: &[Arc<ServiceCIDR>],
    addresses: impl Fn() -> BTreeSet<IpAddr>,
    now: Timestamp,
) -> Plan {
    let Some(deleted) = &network.metadata.deletion_timestamp else {
        return Plan::Keep;
    };
    if is_needed(network, all, addresses) {
        return Plan::Wait;
    }
    let left = GRACE - now.duration_since(deleted.0);
    Plan::LetGoIn(Duration::try_from(left).unwrap_or(Duration::ZERO))
}

/// An address is in no other network that stays.
fn is_needed(
    network: &ServiceCIDR,
    all: &[Arc<ServiceCIDR>],
    addresses: impl Fn() -> BTreeSet<IpAddr>,
) -> bool {
    let stays = |one: &&Arc<ServiceCIDR>| {
        one.metadata.uid != network.metadata.uid && one.metadata.deletion_timestamp.is_none()
    };
    let others: Vec<Prefix> = all
        .iter()
        .filter(stays)
        .flat_map(|one| prefixes(one))
        .collect();
    let alone: Vec<Prefix> = prefixes(network)
        .filter(|own| !others.iter().any(|other| other.holds(*own)))
        .collect();
    if alone.is_empty() {
        return false;
    }
    addresses().into_iter().any(|address| {
        alone.iter().any(|own| own.offers(address))
            && !others.iter().any(|other| other.offers(address))
    })
}

fn prefixes(network: &ServiceCIDR) -> impl Iterator<Item = Prefix> {
    let cidrs = network
        .spec
        .iter()
        .flat_map(|spec| spec.cidrs.iter().flatten());
    cidrs.filter_map(|cidr| Prefix::parse(cidr))
}

pub(super) fn overlapping(
    network: &ServiceCIDR,
    all: &[Arc<ServiceCIDR>],
) -> Vec<Arc<ServiceCIDR>> {
    let own: Vec<Prefix> = prefixes(network).collect();
    let overlaps = |one: &&Arc<ServiceCIDR>| {
        prefixes(one).any(|other| own.iter().any(|own| own.overlaps(other)))
    };
    all.iter().filter(overlaps).cloned().collect()
}

pub(super) fn containing(address: IpAddr, all: &[Arc<ServiceCIDR>]) -> Vec<Arc<ServiceCIDR>> {
    let contains = |one: &&Arc<ServiceCIDR>| prefixes(one).any(|own| own.offers(address));
    all.iter().filter(contains).cloned().collect()
}

/// The address of a Service; of others' addresses none.
pub(super) fn given_out(address: &IPAddress) -> Option<IpAddr> {
    let labels = address.metadata.labels.as_ref()?;
    if labels.get(MANAGER_LABEL).map(String::as_str) != Some(MANAGER) {
        return None;
    }
    address.metadata.name.as_deref()?.parse().ok()
}

pub(super) fn is_told(network: &ServiceCIDR, told: &Told) -> bool {
    let status = network.status.as_ref();
    let mut conditions = status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|one| {
        one.type_ == CONDITION
            && one.status == told.status
            && one.reason == told.reason
            && one.message == told.message
    })
}
