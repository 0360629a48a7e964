//! Decides which slices mirror Endpoints: one for each set of ports and address family. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, Endpoints};
use k8s_openapi::api::discovery::v1::{
    Endpoint, EndpointConditions, EndpointPort as SlicePort, EndpointSlice,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::MANAGER;
use crate::endpoint_slices::{
    EndpointKey, MANAGED_BY, SERVICE_NAME, endpoints_of, name_prefix, says_the_same, sorted,
};
use crate::ownership::controller_reference;
use crate::services::{Family, LAST_CHANGE, parse_address};
use crate::subsets::repack;
use crate::wire_order::Order;

/// Upstream's bound of one subset, and so of one slice.
pub(super) const ADDRESSES_MAX: usize = 1000;
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) create: Vec<EndpointSlice>,
    pub(super) update: Vec<EndpointSlice>,
    pub(super) delete: Vec<EndpointSlice>,
    /// These say what they should.
    pub(super) in_order: Vec<EndpointSlice>,
    pub(super) events: Vec<Event>,
}

/// A warning about the Endpoints.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

type Key = (Family, Vec<Order>);
type Annotations = BTreeMap<String, String>;

#[derive(Debug, Default)]
struct Group {
    ports: Vec<SlicePort>,
    endpoints: BTreeMap<EndpointKey, Endpoint>,
}

pub(super) fn plan(endpoints: &Endpoints, existing: Vec<EndpointSlice>) -> Plan {
    let mut plan = Plan::default();
    let wanted = wanted(endpoints, &mut plan.events);
    let mut by_key: BTreeMap<Key, Vec<EndpointSlice>> = BTreeMap::new();
    for mut slice in existing {
        slice.ports = slice.ports.map(sorted);
        let family = if slice.address_type == Family::IPv6.as_str() {
            Family::IPv6
        } else {
            Family::IPv4
        };
        let key = (family, orders(slice.ports.as_deref().unwrap_or_default()));
        by_key.entry(key).or_default().push(slice);
    }
    for (key, group) in wanted {
        let family = key.0;
        let mut existing = by_key.remove(&key).unwrap_or_default().into_iter();
        if group.endpoints.is_empty() {
            plan.delete.extend(existing);
            continue;
        }
        let first = existing.next();
        plan.delete.extend(existing);
        match first {
            Some(first) if is_in_order(endpoints, &first, &group) => plan.in_order.push(first),
            Some(first) => {
                let mut slice = slice(endpoints, family, group);
                slice.metadata.name = first.metadata.name;
                plan.update.push(slice);
            }
            None => {
                let mut slice = slice(endpoints, family, group);
                let name = endpoints.metadata.name.as_deref().unwrap_or_default();
                slice.metadata.generate_name = Some(name_prefix(name));
                plan.create.push(slice);
            }
        }
    }
    plan.delete.extend(by_key.into_values().flatten());
    recycle(&mut plan);
    plan
}

fn orders(ports: &[SlicePort]) -> Vec<Order> {
    ports.iter().map(Order::of_slice_port).collect()
}

/// The endpoints that there should be. Says what had to be left out.
fn wanted(endpoints: &Endpoints, events: &mut Vec<Event>) -> BTreeMap<Key, Group> {
    let mut wanted: BTreeMap<Key, Group> = BTreeMap::new();
    let (mut invalid, mut skipped) = (0, 0);
    for subset in repack(endpoints.subsets.as_deref().unwrap_or_default()) {
        let ports = sorted(subset.ports.iter().flatten().map(port).collect());
        let orders = orders(&ports);
        for family in [Family::IPv4, Family::IPv6] {
            let group = wanted.entry((family, orders.clone())).or_default();
            group.ports.clone_from(&ports);
        }
        let ready = subset.addresses.iter().flatten();
        let not_ready = subset.not_ready_addresses.iter().flatten();
        let all = ready
            .map(|address| (address, true))
            .chain(not_ready.map(|address| (address, false)));
        let mut added = 0;
        for (address, is_ready) in all {
            if added == ADDRESSES_MAX {
                skipped += 1;
                continue;
            }
            match endpoint(address, is_ready) {
                Some((family, endpoint)) => {
                    let group = wanted.entry((family, orders.clone())).or_default();
                    group.endpoints.insert(EndpointKey::of(&endpoint), endpoint);
                    added += 1;
                }
                None => invalid += 1,
            }
        }
    }
    if invalid > 0 {
        let message =
            format!("Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices");
        let reason = "InvalidIPAddress";
        events.push(Event { reason, message });
    }
    if skipped > 0 {
        let skipped = skipped + invalid;
        let message = format!(
            "A max of {ADDRESSES_MAX} addresses can be mirrored to EndpointSlices per Endpoints \
             subset. {skipped} addresses were skipped"
        );
        let reason = "TooManyAddressesToMirror";
        events.push(Event { reason, message });
    }
    wanted
}

fn port(port: &EndpointPort) -> SlicePort {
    SlicePort {
        name: Some(port.name.clone().unwrap_or_default()),
        port: Some(port.port),
        protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".to_owned())),
        app_protocol: port.app_protocol.clone(),
    }
}

fn endpoint(address: &EndpointAddress, is_ready: bool) -> Option<(Family, Endpoint)> {
    let ip = parse_address(&address.ip)?;
    let endpoint = Endpoint {
        addresses: vec![ip.to_string()],
        conditions: Some(EndpointConditions {
            ready: Some(is_ready),
            ..EndpointConditions::default()
        }),
        target_ref: address.target_ref.clone(),
        node_name: address.node_name.clone(),
        hostname: address.hostname.clone().filter(|name| !name.is_empty()),
        ..Endpoint::default()
    };
    Some((Family::of(ip), endpoint))
}

/// The annotations that are mirrored.
fn annotations(endpoints: &Endpoints) -> Annotations {
    let mut annotations = endpoints.metadata.annotations.clone().unwrap_or_default();
    annotations.retain(|name, _| name != LAST_CHANGE && name != LAST_APPLIED);
    annotations
}

fn slice(endpoints: &Endpoints, family: Family, group: Group) -> EndpointSlice {
    let mut labels = endpoints.metadata.labels.clone().unwrap_or_default();
    let name = endpoints.metadata.name.clone().unwrap_or_default();
    labels.insert(SERVICE_NAME.to_owned(), name);
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    let annotations = annotations(endpoints);
    let all = group.endpoints.into_values().take(ADDRESSES_MAX);
    EndpointSlice {
        metadata: ObjectMeta {
            namespace: endpoints.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: (!annotations.is_empty()).then_some(annotations),
            owner_references: Some(vec![controller_reference(endpoints)]),
            ..ObjectMeta::default()
        },
        address_type: family.as_str().to_owned(),
        endpoints: Some(all.collect()),
        ports: Some(group.ports),
    }
}

fn is_in_order(endpoints: &Endpoints, slice: &EndpointSlice, group: &Group) -> bool {
    let found = endpoints_of(slice);
    let is_wanted = |endpoint: &Endpoint| {
        let wanted = group.endpoints.get(&EndpointKey::of(endpoint));
        wanted.is_some_and(|wanted| says_the_same(wanted, endpoint))
    };
    let mut labels = slice.metadata.labels.clone().unwrap_or_default();
    labels.retain(|name, _| name != MANAGED_BY && name != SERVICE_NAME);
    found.len() == group.endpoints.len()
        && found.iter().all(is_wanted)
        && labels == endpoints.metadata.labels.clone().unwrap_or_default()
        && slice.metadata.annotations.clone().unwrap_or_default() == annotations(endpoints)
        && !is_of_predecessor(endpoints, slice)
}

/// Its owner is an object of that name that is gone: it would be collected as garbage.
fn is_of_predecessor(endpoints: &Endpoints, slice: &EndpointSlice) -> bool {
    let mut owners = slice.metadata.owner_references.iter().flatten();
    owners.any(|owner| {
        owner.kind == "Endpoints"
            && Some(&owner.name) == endpoints.metadata.name.as_ref()
            && Some(&owner.uid) != endpoints.metadata.uid.as_ref()
    })
}

/// A slice that goes takes the place of one of its family that would be made.
fn recycle(plan: &mut Plan) {
    for mut new in std::mem::take(&mut plan.create) {
        let fits = |old: &EndpointSlice| old.address_type == new.address_type;
        match plan.delete.iter().position(fits) {
            Some(index) => {
                new.metadata.name = plan.delete.remove(index).metadata.name;
                plan.update.push(new);
            }
            None => plan.create.push(new),
        }
    }
}

#[cfg(test)]
mod tests;
