//! Hints that divide the endpoints of a Service among zones by the CPUs of their nodes.
//!
//! Only for Services that ask for it by annotation. A zone gets so many that no endpoint has more
//! than a fifth above its share of the load; where that cannot be, all hints are taken off and an
//! event says why. Slices that are in order keep their hints; those that are written anyway make up
//! for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use coracle_api::quantity::Quantity;
use coracle_client::ObjectKey;
use coracle_client::events::EventType;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointHints, EndpointSlice, ForZone};
use parking_lot::Mutex;

use super::desired::ZONE;
use super::plan::{Changes, Event};
use crate::endpoint_slices::endpoints_of;
use crate::nodes;
use crate::services::{Family, Service, TOPOLOGY_HINTS, TOPOLOGY_MODE};

mod shares; // Pure: how many endpoints a zone gets, and who gives to whom.

use shares::{Share, Zones};

/// Remembers what zones have and what they were given.
#[derive(Debug, Default)]
pub(super) struct Topology(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The part of all CPUs that is in a zone; none when some node does not say.
    ratios: Option<BTreeMap<String, f64>>,
    given: BTreeMap<ObjectKey, BTreeMap<Family, Zones>>,
    /// Services that were said to have hints.
    enabled: BTreeSet<ObjectKey>,
}

pub(super) fn is_asked_for(service: &Service) -> bool {
    let annotations = service.metadata.annotations.as_ref();
    let value = annotations.and_then(|all| all.get(TOPOLOGY_HINTS).or(all.get(TOPOLOGY_MODE)));
    matches!(value.map(String::as_str), Some("Auto" | "auto"))
}

pub(super) fn is_ready(endpoint: &Endpoint) -> bool {
    let conditions = endpoint.conditions.as_ref();
    conditions.is_some_and(|conditions| conditions.ready == Some(true))
}

/// Whether an update of a node may change the shares of zones.
pub(super) fn is_other_capacity(old: &Node, new: &Node) -> bool {
    nodes::is_ready(old) != nodes::is_ready(new) || zone_of(old) != zone_of(new)
}

fn zone_of(node: &Node) -> Option<&String> {
    node.metadata.labels.as_ref()?.get(ZONE)
}

pub(super) fn disabled(why: &str, family: Family) -> Event {
    let message = format!("{why}, addressType: {}", family.as_str());
    Event {
        kind: EventType::Warning,
        reason: "TopologyAwareHintsDisabled",
        message,
    }
}

/// The part of all CPUs in each zone, if every node that counts says where it is and what it has.
fn ratios(nodes: &[Arc<Node>]) -> Option<BTreeMap<String, f64>> {
    // Wide, for a node may say that it has as much as one number holds.
    let mut by_zone: BTreeMap<String, i128> = BTreeMap::new();
    for node in nodes {
        let labels = node.metadata.labels.as_ref();
        let is_control_plane = ["control-plane", "master"].iter().any(|role| {
            labels.is_some_and(|all| all.contains_key(&format!("node-role.kubernetes.io/{role}")))
        });
        if is_control_plane || !nodes::is_ready(node) {
            continue;
        }
        let status = node.status.as_ref();
        let cpu = status.and_then(|status| status.allocatable.as_ref()?.get("cpu"));
        let cpu = cpu.and_then(|cpu| Quantity::parse(&cpu.0).ok());
        let milli = cpu.map_or(0, |cpu| i128::from(cpu.milli_value()));
        let zone = zone_of(node).filter(|zone| !zone.is_empty() && milli > 0)?;
        *by_zone.entry(zone.clone()).or_default() += milli;
    }
    let total: i128 = by_zone.values().sum();
    #[allow(clippy::cast_precision_loss)] // A part need not be exact.
    let part = |milli: i128| milli as f64 / total as f64;
    let ratios = by_zone.into_iter().map(|(zone, milli)| (zone, part(milli)));
    let ratios: BTreeMap<_, _> = ratios.collect();
    (ratios.len() >= 2).then_some(ratios)
}

impl Topology {
    pub(super) fn set_nodes(&self, nodes: &[Arc<Node>]) {
        self.0.lock().ratios = ratios(nodes);
    }

    /// The Services in which some zone has too few endpoints for its share by now.
    pub(super) fn overloaded(&self) -> Vec<ObjectKey> {
        let state = self.0.lock();
        let given = state.given.iter().filter(|(_, families)| {
            let mut families = families.values();
            families.any(|zones| shares::is_overloaded(zones, state.ratios.as_ref()))
        });
        given.map(|(key, _)| key.clone()).collect()
    }

    /// Forgets what a Service was given. True when it was said to have hints.
    pub(super) fn remove(&self, key: &ObjectKey, family: Family) -> bool {
        let mut state = self.0.lock();
        if let Some(families) = state.given.get_mut(key) {
            families.remove(&family);
            if families.is_empty() {
                state.given.remove(key);
            }
        }
        state.enabled.remove(key)
    }

    pub(super) fn forget(&self, key: &ObjectKey) {
        let mut state = self.0.lock();
        state.given.remove(key);
        state.enabled.remove(key);
    }

    /// Gives every ready endpoint of the slices to be written a zone, and returns what to say.
    pub(super) fn add_hints(
        &self,
        key: &ObjectKey,
        family: Family,
        changes: &mut Changes,
    ) -> Vec<Event> {
        let slices = [&changes.create, &changes.update, &changes.unchanged];
        let endpoints = slices.into_iter().flatten().flat_map(endpoints_of);
        let count = endpoints.filter(|endpoint| is_ready(endpoint)).count();
        let assigned = {
            let ratios = self.0.lock().ratios.clone();
            shares::shares(ratios.as_ref(), count)
                .and_then(|shares| assign(&shares, changes).map_err(str::to_owned))
        };
        match assigned {
            Ok(given) => {
                let mut state = self.0.lock();
                let families = state.given.entry(key.clone()).or_default();
                families.insert(family, given);
                let is_new = state.enabled.insert(key.clone());
                is_new.then(|| enabled(family)).into_iter().collect()
            }
            Err(why) => {
                self.remove(key, family);
                remove_hints(changes);
                vec![disabled(&why, family)]
            }
        }
    }
}

fn enabled(family: Family) -> Event {
    let family = family.as_str();
    Event {
        kind: EventType::Normal,
        reason: "TopologyAwareHintsEnabled",
        message: format!("Topology Aware Hints has been enabled, addressType: {family}"),
    }
}

/// What each zone was given in the end, or why that cannot be.
fn assign(shares: &BTreeMap<String, Share>, changes: &mut Changes) -> Result<Zones, &'static str> {
    let mut given = Zones::new();
    for slice in std::mem::take(&mut changes.unchanged) {
        match zones_in(&slice, &given, shares) {
            Some(zones) => {
                for (zone, count) in zones {
                    *given.entry(zone).or_default() += count;
                }
                changes.unchanged.push(slice);
            }
            None => changes.update.push(slice),
        }
    }
    // Each in its own zone first; then zones with too many give to those with too few.
    for endpoint in ready_endpoints(changes) {
        let Some(zone) = endpoint.zone.clone().filter(|zone| !zone.is_empty()) else {
            return Err("One or more endpoints do not have a zone specified");
        };
        *given.entry(zone.clone()).or_default() += 1;
        endpoint.hints = for_zone(zone);
    }
    let (mut giving, mut receiving) = shares::transfers(shares, &given);
    for endpoint in ready_endpoints(changes) {
        let Some(receiver) = receiving.keys().next().cloned() else {
            break;
        };
        let giver = endpoint.zone.clone().unwrap_or_default();
        if shares::take_one(&mut giving, &giver) {
            shares::take_one(&mut receiving, &receiver);
            *given.entry(receiver.clone()).or_default() += 1;
            *given.entry(giver).or_default() -= 1;
            endpoint.hints = for_zone(receiver);
        }
    }
    if given.is_empty() {
        return Err("No hints allocated for zones");
    }
    Ok(given)
}

fn ready_endpoints(changes: &mut Changes) -> impl Iterator<Item = &mut Endpoint> {
    let slices = changes.create.iter_mut().chain(&mut changes.update);
    let endpoints = slices.flat_map(|slice| slice.endpoints.iter_mut().flatten());
    endpoints.filter(|endpoint| is_ready(endpoint))
}

fn for_zone(name: String) -> Option<EndpointHints> {
    Some(EndpointHints {
        for_zones: Some(vec![ForZone { name }]),
        for_nodes: None,
    })
}

/// How many endpoints of a slice are for each zone; `None` when it must be written, for a hint is
/// missing or wrong, or a zone would get more than it may.
fn zones_in(
    slice: &EndpointSlice,
    given: &Zones,
    shares: &BTreeMap<String, Share>,
) -> Option<Zones> {
    let mut found = Zones::new();
    for endpoint in endpoints_of(slice).iter().filter(|one| is_ready(one)) {
        let zones = endpoint.hints.as_ref()?.for_zones.as_ref()?;
        if zones.is_empty() {
            return None;
        }
        for zone in zones {
            shares.get(&zone.name)?;
            *found.entry(zone.name.clone()).or_default() += 1;
        }
    }
    let fits = found.iter().all(|(zone, count)| {
        let before = given.get(zone).copied().unwrap_or(0);
        shares[zone].maximum >= count + before
    });
    fits.then_some(found)
}

/// Takes hints off everything that is written; slices with some are written for that.
pub(super) fn remove_hints(changes: &mut Changes) {
    let has_hints = |slice: &EndpointSlice| {
        let mut endpoints = endpoints_of(slice).iter();
        endpoints.any(|endpoint| endpoint.hints.is_some())
    };
    let unchanged = std::mem::take(&mut changes.unchanged);
    let (hinted, unchanged): (Vec<_>, Vec<_>) = unchanged.into_iter().partition(has_hints);
    changes.unchanged = unchanged;
    changes.update.extend(hinted);
    for slice in changes.create.iter_mut().chain(&mut changes.update) {
        for endpoint in slice.endpoints.iter_mut().flatten() {
            endpoint.hints = None;
        }
    }
}

#[cfg(test)]
mod tests;
