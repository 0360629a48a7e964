//! What a pod asks of its node, all resources of it. Pure.

use super::manifest::{is_mirror, is_static};
use super::sizes::{self, amount};
use super::state::{init_containers, is_sidecar, spec};
use crate::node::allocatable::{CPU, MEMORY};
use coracle_api::amounts::Amounts;
use coracle_api::pod_spec::resources;
use coracle_api::quantity::{Format, Quantity};
use k8s_openapi::api::core::v1::{Container, Pod, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// With the overhead of its runtime.
pub fn requests(pod: &Pod) -> Amounts {
    let overhead = spec(pod).overhead.iter().flatten();
    let mut names = names(pod, |size| size.requests.as_ref());
    names.extend(overhead.map(|(name, _)| name.as_str()));
    let amounts = names.into_iter();
    amounts
        .map(|name| (name.to_owned(), request(pod, name)))
        .collect()
}

/// What it holds of its node: what it was given of cpu and memory, which is other than it asks for
/// while a resize of it waits.
pub fn held(pod: &Pod, given: Option<sizes::Amounts>) -> Amounts {
    let mut all = requests(pod);
    if let Some(given) = given {
        let cpu = Quantity::from_milli(given.cpu_milli, Format::DecimalSi);
        let memory = Quantity::from_units(given.memory_bytes, Format::BinarySi);
        all.set(CPU, cpu);
        all.set(MEMORY, memory);
    }
    all
}

/// What no part of it may go beyond; overhead counts where there is a limit.
pub fn limits(pod: &Pod) -> Amounts {
    let names = names(pod, |size| size.limits.as_ref()).into_iter();
    let own = spec(pod).resources.as_ref();
    names
        .map(|name| {
            let limit = limited(own, name);
            let limit = limit.unwrap_or_else(|| at_a_time(pod, |size| limited(size, name)));
            (name.to_owned(), limit.plus(overhead(pod, name)))
        })
        .collect()
}

/// All that are named by anything in the pod.
fn names(
    pod: &Pod,
    list: fn(&ResourceRequirements) -> Option<&BTreeMap<String, Written>>,
) -> BTreeSet<&str> {
    let spec = spec(pod);
    let containers = init_containers(spec).iter().chain(&spec.containers);
    let sizes = containers.filter_map(|container| container.resources.as_ref());
    let lists = sizes.chain(&spec.resources).filter_map(list);
    lists.flatten().map(|(name, _)| name.as_str()).collect()
}

/// What one container asks for.
pub fn container(spec: &Value, what: &str) -> Amounts {
    resources::asked(spec, what)
}

/// From this priority on a pod is critical to its cluster.
const CRITICAL_PRIORITY: i32 = 2_000_000_000;

pub fn priority(pod: &Pod) -> i32 {
    spec(pod).priority.unwrap_or(0)
}

/// Such pods are neither evicted nor refused for want of resources, and static ones are among
/// them: they would not come back.
pub fn is_critical(pod: &Pod) -> bool {
    is_static(pod) || is_mirror(pod) || priority(pod) >= CRITICAL_PRIORITY
}

/// The class of service. The API server has set it; a pod from before that is asked.
pub fn class(pod: &Pod) -> String {
    let known = pod.status.as_ref();
    let known = known.and_then(|status| status.qos_class.clone());
    known.unwrap_or_else(|| {
        let spec = serde_json::to_value(spec(pod)).unwrap_or_default();
        resources::quality_of_service(&spec).to_owned()
    })
}

/// The most that its containers request at a time, or what is requested for the pod as a whole,
/// and its overhead.
pub fn request(pod: &Pod, name: &str) -> Quantity {
    let own = spec(pod).resources.as_ref();
    let asked =
        requested(own, name).unwrap_or_else(|| at_a_time(pod, |size| requested(size, name)));
    asked.plus(overhead(pod, name))
}

/// The limit of a pod as a whole: its own, or that of its containers when all of them have one.
pub fn limit(pod: &Pod, name: &str) -> Option<Quantity> {
    let spec = spec(pod);
    let own = limited(spec.resources.as_ref(), name);
    let mut all = init_containers(spec).iter().chain(&spec.containers);
    if own.is_none() && !all.all(|one| limited(one.resources.as_ref(), name).is_some()) {
        return None;
    }
    let together = || at_a_time(pod, |size| limited(size, name));
    Some(own.unwrap_or_else(together).plus(overhead(pod, name)))
}

fn requested(size: Option<&ResourceRequirements>, name: &str) -> Option<Quantity> {
    amount(size?.requests.as_ref(), name)
}

fn limited(size: Option<&ResourceRequirements>, name: &str) -> Option<Quantity> {
    amount(size?.limits.as_ref(), name).filter(|limit| !limit.is_zero())
}

fn overhead(pod: &Pod, name: &str) -> Quantity {
    amount(spec(pod).overhead.as_ref(), name).unwrap_or(Quantity::ZERO)
}

/// Those that run together are added; an init container counts for as long as it runs, beside the
/// sidecars before it.
fn at_a_time(
    pod: &Pod,
    of: impl Fn(Option<&ResourceRequirements>) -> Option<Quantity>,
) -> Quantity {
    let spec = spec(pod);
    let of = |container: &Container| of(container.resources.as_ref()).unwrap_or(Quantity::ZERO);
    let mut together = spec
        .containers
        .iter()
        .map(of)
        .fold(Quantity::ZERO, Quantity::plus);
    let (mut sidecars, mut highest) = (Quantity::ZERO, Quantity::ZERO);
    for container in init_containers(spec) {
        if is_sidecar(container) {
            together = together.plus(of(container));
            sidecars = sidecars.plus(of(container));
            highest = highest.max(sidecars);
        } else {
            highest = highest.max(sidecars.plus(of(container)));
        }
    }
    together.max(highest)
}

#[cfg(test)]
mod tests;
