//! Decides which slices of a Service are made, changed and deleted. Pure but for the topology,
//! which remembers what share of a Service each zone was given.
//!
//! Each address family is planned for itself. A slice that is in order is not written.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_client::events::EventType;
use coracle_client::key_of;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;

use super::desired::{self, MissingNode};
use super::topology::{self, Topology};
use super::{packing, slice, traffic};
use crate::endpoint_slices::sorted;
use crate::services::{Family, Service};
use crate::wire_order::Order;

pub(super) struct Observed<'a> {
    pub(super) service: &'a Service,
    /// Those that it selects.
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) node: &'a dyn Fn(&str) -> Option<Arc<Node>>,
    /// Its slices, as the server has them.
    pub(super) existing: Vec<EndpointSlice>,
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) families: Vec<FamilyPlan>,
    /// Slices of families that the Service has no more.
    pub(super) other_families: Vec<EndpointSlice>,
}

#[derive(Debug, Default)]
pub(super) struct FamilyPlan {
    pub(super) changes: Changes,
    pub(super) missing_nodes: Vec<MissingNode>,
    pub(super) events: Vec<Event>,
}

#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) create: Vec<EndpointSlice>,
    pub(super) update: Vec<EndpointSlice>,
    pub(super) delete: Vec<EndpointSlice>,
    pub(super) unchanged: Vec<EndpointSlice>,
}

/// Something to say about the Service.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) kind: EventType,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

pub(super) fn plan(observed: Observed<'_>, topology: &Topology) -> Plan {
    let families = desired::families(observed.service);
    let mut by_family: BTreeMap<Family, Vec<EndpointSlice>> = BTreeMap::new();
    let mut plan = Plan::default();
    for existing in observed.existing {
        let family = families
            .iter()
            .find(|family| family.as_str() == existing.address_type);
        match family {
            Some(family) => by_family.entry(*family).or_default().push(existing),
            None => plan.other_families.push(existing),
        }
    }
    for family in [Family::IPv4, Family::IPv6] {
        let mut gone = plan.other_families.iter();
        if gone.any(|slice| slice.address_type == family.as_str()) {
            topology.remove(&key_of(observed.service), family);
        }
    }
    for family in families {
        let existing = by_family.remove(&family).unwrap_or_default();
        let wanted = desired::group(observed.service, observed.pods, observed.node, family);
        let planned = plan_family(observed.service, family, existing, wanted, topology);
        plan.families.push(planned);
    }
    plan
}

fn plan_family(
    service: &Service,
    family: Family,
    existing: Vec<EndpointSlice>,
    wanted: desired::Desired,
    topology: &Topology,
) -> FamilyPlan {
    let count = existing.len();
    let mut changes = Changes::default();
    let mut by_ports: BTreeMap<Vec<Order>, Vec<EndpointSlice>> = BTreeMap::new();
    for mut one in existing {
        if slice::is_owned_by(&one, service) {
            one.ports = one.ports.map(sorted);
            let ports = one.ports.iter().flatten().map(Order::of_slice_port);
            by_ports.entry(ports.collect()).or_default().push(one);
        } else {
            changes.delete.push(one); // Of an earlier Service of that name.
        }
    }
    for (ports, group) in wanted.by_ports {
        let existing = by_ports.remove(&ports).unwrap_or_default();
        packing::pack(service, family, existing, group, &mut changes);
    }
    changes.delete.extend(by_ports.into_values().flatten());
    if changes.delete.len() == count && changes.create.is_empty() {
        keep_placeholder(service, family, &mut changes);
    }
    let mut events = Vec::new();
    set_hints(service, family, topology, &mut changes, &mut events);
    FamilyPlan {
        changes,
        missing_nodes: wanted.missing_nodes,
        events,
    }
}

/// A Service without endpoints has one slice that says so.
fn keep_placeholder(service: &Service, family: Family, changes: &mut Changes) {
    let placeholder = slice::new(service, family, Vec::new());
    let is_there =
        matches!(&changes.delete[..], [only] if slice::is_same_placeholder(only, &placeholder));
    if is_there {
        changes.unchanged.append(&mut changes.delete);
    } else {
        changes.create.push(placeholder);
    }
}

fn set_hints(
    service: &Service,
    family: Family,
    topology: &Topology,
    changes: &mut Changes,
    events: &mut Vec<Event>,
) {
    let key = key_of(service);
    if topology::is_asked_for(service) {
        events.extend(topology.add_hints(&key, family, changes));
        return;
    }
    if topology.remove(&key, family) {
        events.push(topology::disabled(
            "Topology Aware Hints has been disabled",
            family,
        ));
    }
    match traffic::Distribution::of(service) {
        Some(distribution) => distribution.set_hints(changes),
        None => topology::remove_hints(changes),
    }
}

#[cfg(test)]
mod tests;
