//! The pools of devices that a node sees.
//!
//! A pool is what its driver last published, at the highest generation: all of its slices must be
//! there, though not all need be for the node.

use super::stock::{Stock, has_counters};
use crate::node_info::NodeInfo;
use crate::plugins::node_selector::any_term_matches;
use k8s_openapi::api::core::v1::NodeSelector;
use k8s_openapi::api::resource::v1::{CounterSet, Device, ResourceSlice};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Whole,
    /// The driver has not published all of it.
    Incomplete,
    /// Its slices contradict each other.
    Invalid,
}

#[derive(Debug)]
pub struct Pool<'a> {
    pub driver: &'a str,
    pub name: &'a str,
    pub condition: Condition,
    /// Slices with devices, by name; of a whole pool alone.
    pub here: Vec<&'a ResourceSlice>,
    /// Those that are not for this node.
    pub elsewhere: Vec<&'a ResourceSlice>,
    pub counters: BTreeMap<&'a str, &'a CounterSet>,
}

/// Which nodes a slice or a device is for.
fn node_matches(
    node: &NodeInfo,
    name: Option<&str>,
    is_for_all: Option<bool>,
    selector: Option<&NodeSelector>,
) -> bool {
    match (name.filter(|name| !name.is_empty()), selector) {
        (Some(name), _) => *node.name == *name,
        (None, _) if is_for_all == Some(true) => true,
        (None, Some(selector)) => any_term_matches(&selector.node_selector_terms, &node.facts),
        (None, None) => false,
    }
}

pub fn device_matches(node: &NodeInfo, device: &Device) -> bool {
    let name = device.node_name.as_deref();
    node_matches(node, name, device.all_nodes, device.node_selector.as_ref())
}

pub fn devices(slice: &ResourceSlice) -> &[Device] {
    slice.spec.devices.as_deref().unwrap_or_default()
}

/// Those that the node can use.
pub fn devices_for<'a>(
    slice: &'a ResourceSlice,
    node: &NodeInfo,
) -> impl Iterator<Item = &'a Device> {
    let spec = &slice.spec;
    let is_by_device = spec.per_device_node_selection == Some(true);
    let (name, selector) = (spec.node_name.as_deref(), spec.node_selector.as_ref());
    let is_here = is_by_device || node_matches(node, name, spec.all_nodes, selector);
    let all = devices(slice).iter();
    all.filter(move |device| is_here && (!is_by_device || device_matches(node, device)))
}

fn is_relevant(slice: &ResourceSlice, node: &NodeInfo) -> bool {
    let spec = &slice.spec;
    let (name, selector) = (spec.node_name.as_deref(), spec.node_selector.as_ref());
    has_counters(slice)
        || node_matches(node, name, spec.all_nodes, selector)
        || spec.per_device_node_selection == Some(true)
            && devices(slice).iter().any(|one| device_matches(node, one))
}

/// By driver and name, those whose devices must be made ready last.
pub fn gather<'a>(stock: &'a Stock, node: &NodeInfo) -> Vec<Pool<'a>> {
    let mut found: BTreeMap<(&str, &str), Vec<&ResourceSlice>> = BTreeMap::new();
    let slices = stock.slices_for(&node.name);
    for slice in slices.filter(|slice| is_relevant(slice, node)) {
        let pool = &slice.spec.pool;
        let known = found.entry((&slice.spec.driver, &pool.name)).or_default();
        let generation = known.first().map(|one| one.spec.pool.generation);
        if generation.is_some_and(|known| known < pool.generation) {
            known.clear();
        }
        if generation.is_none_or(|known| known <= pool.generation) {
            known.push(slice);
        }
    }
    let pools = found.into_iter();
    let pools = pools.filter_map(|(id, slices)| pool(id, slices, stock));
    let (late, mut all): (Vec<_>, Vec<_>) = pools.partition(|pool| {
        let mut devices = pool.here.iter().flat_map(|slice| devices(slice));
        devices.any(|one| one.binding_conditions.is_some())
    });
    all.extend(late);
    all
}

/// `None` where there is a newer pool, for other nodes.
fn pool<'a>(
    (driver, name): (&'a str, &'a str),
    slices: Vec<&'a ResourceSlice>,
    stock: &'a Stock,
) -> Option<Pool<'a>> {
    let mut pool = Pool {
        driver,
        name,
        condition: Condition::Whole,
        here: Vec::new(),
        elsewhere: Vec::new(),
        counters: BTreeMap::new(),
    };
    let newest = &slices[0].spec.pool;
    let count = usize::try_from(newest.resource_slice_count).unwrap_or(0);
    if slices.len() != count {
        let all = stock.slices.iter().map(|slice| &**slice);
        let all = all.filter(|one| one.spec.driver == driver && one.spec.pool.name == name);
        let mut others = Vec::new();
        for slice in all {
            if slice.spec.pool.generation > newest.generation {
                return None;
            }
            let is_of_pool = slice.spec.pool.generation == newest.generation;
            if is_of_pool && !slices.iter().any(|one| std::ptr::eq(*one, slice)) {
                others.push(slice);
            }
        }
        if slices.len() + others.len() != count {
            pool.condition = Condition::Incomplete;
            return Some(pool);
        }
        pool.elsewhere = others;
    }
    let (counters, here): (Vec<_>, Vec<_>) = slices.into_iter().partition(|one| has_counters(one));
    pool.here = here;
    if !is_valid(&mut pool, &counters) {
        pool.condition = Condition::Invalid;
        pool.here.clear();
        pool.elsewhere.clear();
    }
    Some(pool)
}

/// No name is there twice, and devices take of counters that there are.
fn is_valid<'a>(pool: &mut Pool<'a>, with_counters: &[&'a ResourceSlice]) -> bool {
    let mut names = BTreeSet::new();
    let mut here = pool.here.iter().flat_map(|slice| devices(slice));
    if !here.all(|device| names.insert(&device.name)) {
        return false;
    }
    let sets = with_counters
        .iter()
        .flat_map(|one| &one.spec.shared_counters);
    for set in sets.flatten() {
        if pool.counters.insert(&set.name, set).is_some() {
            return false;
        }
    }
    let slices = pool.here.iter().chain(&pool.elsewhere);
    let devices = slices.flat_map(|slice| devices(slice));
    let mut taken = devices.flat_map(|device| device.consumes_counters.iter().flatten());
    taken.all(|taken| {
        let Some(set) = pool.counters.get(&*taken.counter_set) else {
            return false;
        };
        let mut names = taken.counters.keys();
        names.all(|name| set.counters.contains_key(name))
    })
}
