//! What containers and the pod have of cpu and memory, as their control groups say it.

use super::super::asked;
use super::super::sizes::amount;
use super::super::state::View;
use crate::node::resource_list;
use crate::runtime::{ContainerState as Runs, ContainerStatus as Instance, Resources};
use coracle_api::quantity::{Format, Quantity};
use k8s_openapi::api::core::v1::{
    Container, ContainerStatus, PodStatus, ResourceRequirements as Requirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use std::collections::BTreeMap;

type List = BTreeMap<String, Written>;

/// Below these, groups have a floor: what was given is shown instead.
const CPU_LIMIT_MILLI_MIN: i64 = 10;
const CPU_REQUEST_MILLI_MIN: i64 = 2;
const SHARES_PER_CPU: u64 = 1024;

/// Fills what is said of a container that the runtime has.
pub fn of_container(
    view: &View<'_>,
    container: &Container,
    latest: &Instance,
    old: Option<&ContainerStatus>,
    status: &mut ContainerStatus,
) {
    let given = container.resources.clone().unwrap_or_default();
    status.allocated_resources.clone_from(&given.requests);
    if latest.state != Runs::Running {
        status.resources = Some(given);
        return;
    }
    let sizing = &view.memory.sizing;
    let mut shown = given.clone();
    let actual = sizing.of_containers.get(&latest.id);
    // What was told of this very container, where nothing better is known.
    let old = old.filter(|old| {
        let runs = old
            .state
            .as_ref()
            .is_some_and(|state| state.running.is_some());
        runs && old.container_id == status.container_id
    });
    let old = old.and_then(|old| old.resources.as_ref());
    let known = |resources: Option<i64>| resources.filter(|value| *value > 0);
    if let Some(limits) = &mut shown.limits {
        let old = old.and_then(|old| old.limits.as_ref());
        show_cpu(
            limits,
            known(actual.and_then(quota_milli)),
            CPU_LIMIT_MILLI_MIN,
            old,
        );
        let bytes = actual.map(|actual| actual.memory_limit_bytes);
        show_memory(limits, known(bytes), old);
    }
    if let Some(requests) = &mut shown.requests {
        let old = old.and_then(|old| old.requests.as_ref());
        let milli = actual.map(shares_milli);
        show_cpu(requests, known(milli), CPU_REQUEST_MILLI_MIN, old);
        // No group knows it: it is what the container was last given.
        let has = sizing.kept.behind.get(&container.name).unwrap_or(&given);
        if let Some(memory) = has.requests.as_ref().and_then(|has| has.get("memory")) {
            requests.insert("memory".to_owned(), memory.clone());
        }
    }
    status.resources = Some(shown);
}

fn show_cpu(list: &mut List, milli: Option<i64>, milli_min: i64, old: Option<&List>) {
    let given = amount(Some(list), "cpu").map_or(0, |cpu| cpu.milli_value());
    match milli {
        Some(milli) if milli == given => {}
        Some(milli) if milli > milli_min || given > milli_min => {
            let cpu = Quantity::from_milli(milli, Format::DecimalSi);
            list.insert("cpu".to_owned(), Written(cpu.to_string()));
        }
        Some(_) => {}
        None => keep(list, "cpu", old),
    }
}

fn show_memory(list: &mut List, bytes: Option<i64>, old: Option<&List>) {
    let given = amount(Some(list), "memory").map_or(0, |memory| memory.value());
    match bytes {
        Some(bytes) if bytes == given => {}
        Some(bytes) => {
            let memory = Quantity::from_units(bytes, Format::BinarySi);
            list.insert("memory".to_owned(), Written(memory.to_string()));
        }
        None => keep(list, "memory", old),
    }
}

fn keep(list: &mut List, name: &str, old: Option<&List>) {
    if let Some(value) = old.and_then(|old| old.get(name)) {
        list.insert(name.to_owned(), value.clone());
    }
}

fn quota_milli(resources: &Resources) -> Option<i64> {
    let period = i64::try_from(resources.cpu_period_us)
        .ok()
        .filter(|period| *period > 0)?;
    (resources.cpu_quota_us > 0).then(|| resources.cpu_quota_us * 1000 / period)
}

fn shares_milli(resources: &Resources) -> i64 {
    i64::try_from((resources.cpu_shares * 1000).div_ceil(SHARES_PER_CPU)).unwrap_or(0)
}

/// Fills what is said of the pod as a whole.
pub fn of_pod(view: &View<'_>, old: &PodStatus, status: &mut PodStatus) {
    let requests = resource_list(&asked::requests(view.pod));
    let limits = resource_list(&asked::limits(view.pod));
    let some = |list: List| (!list.is_empty()).then_some(list);
    status.allocated_resources = some(requests.clone());
    if old.phase.as_deref() != Some("Running") {
        status.resources = Some(Requirements {
            requests: some(requests),
            limits: some(limits),
            ..Requirements::default()
        });
        return;
    }
    let mut shown = view.spec().resources.clone().unwrap_or_default();
    let old = old.resources.as_ref();
    let actual = view.memory.sizing.of_pod.as_ref();
    let known = |resources: Option<i64>| resources.filter(|value| *value > 0);
    let mut asked = shown.requests.take().unwrap_or_default();
    let told = old.and_then(|old| old.requests.as_ref());
    show_cpu(
        &mut asked,
        known(actual.map(shares_milli)),
        CPU_REQUEST_MILLI_MIN,
        told,
    );
    if let Some(memory) = requests.get("memory") {
        asked.insert("memory".to_owned(), memory.clone());
    }
    let mut bounds = shown.limits.take().unwrap_or_default();
    let told = old.and_then(|old| old.limits.as_ref());
    show_cpu(
        &mut bounds,
        known(actual.and_then(quota_milli)),
        CPU_LIMIT_MILLI_MIN,
        told,
    );
    let bytes = actual.map(|actual| actual.memory_limit_bytes);
    show_memory(&mut bounds, known(bytes), told);
    shown.requests = some(asked);
    shown.limits = some(bounds);
    status.resources = Some(shown);
}
