//! What an evicted pod is told, in upstream's words. Pure.

use super::rank::bytes;
use super::signal::{Condition, Resource};
use super::threshold::Threshold;
use super::tracker::Observations;
use crate::pods::{asked, state};
use crate::usage::pods::PodUsage;
use coracle_api::quantity::Quantity;
use k8s_openapi::api::core::v1::{Container, Pod};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The reason of a pod's status and of its event.
pub const EVICTED: &str = "Evicted";

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    pub text: String,
    /// Of the event.
    pub annotations: BTreeMap<String, String>,
}

/// Of a pod that is refused while the node is short of something.
pub fn refused(conditions: &BTreeSet<Condition>) -> String {
    let names: Vec<_> = conditions.iter().map(ToString::to_string).collect();
    format!("The node had condition: [{}]. ", names.join(" "))
}

pub fn of(
    resource: Resource,
    pod: &Pod,
    usage: Option<&PodUsage>,
    due: &[Threshold],
    seen: &Observations,
) -> Message {
    let mut text = format!("The node was low on resource: {resource}. ");
    let first = due.iter().find_map(|threshold| {
        let observed = seen.get(&threshold.signal)?;
        (threshold.signal.resource() == resource).then_some((threshold, observed))
    });
    if let Some((threshold, observed)) = first {
        let quantity = threshold.value.of(observed.capacity);
        let available = observed.available;
        let _ = write!(
            text,
            "Threshold quantity: {quantity}, available: {available}. "
        );
    }
    let Some(usage) = usage else {
        return Message {
            text,
            annotations: BTreeMap::new(),
        };
    };
    let mut annotations = BTreeMap::new();
    let mut note = |key: &str, value: String| annotations.insert(key.to_owned(), value);
    if let Some((used, request)) = of_whole_pod(resource, pod, usage) {
        let name = pod.metadata.name.clone().unwrap_or_default();
        let _ = write!(
            text,
            "Pod {name} was using {used}, request is {request}, has larger consumption of \
             {resource}. "
        );
        note("offending_pod", name);
        note("offending_pod_usage", used.to_string());
    }
    let (mut names, mut amounts) = (Vec::new(), Vec::new());
    let spec = state::spec(pod);
    for container in spec.containers.iter().chain(state::init_containers(spec)) {
        let Some(used) = used(resource, container, usage) else {
            continue;
        };
        let request = request(container, resource);
        if used > request {
            let name = &container.name;
            let _ = write!(
                text,
                "Container {name} was using {used}, request is {request}, has larger consumption \
                 of {resource}. "
            );
            names.push(name.clone());
            amounts.push(used.to_string());
        }
    }
    note("offending_containers", names.join(","));
    note("offending_containers_usage", amounts.join(","));
    note("starved_resource", resource.to_string());
    Message { text, annotations }
}

/// What is said of a pod that has a request of its own for memory.
fn of_whole_pod(resource: Resource, pod: &Pod, usage: &PodUsage) -> Option<(Quantity, Quantity)> {
    if resource != Resource::Memory {
        return None;
    }
    let own = state::spec(pod).resources.as_ref()?.requests.as_ref()?;
    let request = Quantity::parse(&own.get("memory")?.0).ok()?;
    let used = bytes(usage.usage?.memory_working_set_bytes);
    Some((used, request))
}

fn used(resource: Resource, container: &Container, usage: &PodUsage) -> Option<Quantity> {
    let name = &container.name;
    match resource {
        Resource::Memory => {
            let known = usage.containers.iter().find(|known| known.name == *name)?;
            Some(bytes(known.usage.memory_working_set_bytes))
        }
        Resource::EphemeralStorage => {
            let containers = &usage.disk.as_ref()?.containers;
            let known = containers.iter().find(|known| known.name == *name)?;
            Some(bytes(known.root.plus(known.logs).bytes))
        }
        Resource::Inodes | Resource::Pids => None,
    }
}

fn request(container: &Container, resource: Resource) -> Quantity {
    let spec = serde_json::to_value(container).unwrap_or_default();
    let requests = asked::container(&spec, "requests");
    requests
        .get(&resource.to_string())
        .unwrap_or(Quantity::ZERO)
}

#[cfg(test)]
mod tests;
