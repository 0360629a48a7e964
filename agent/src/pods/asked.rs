//! What a pod asks of its node, all resources of it. Pure.

use super::manifest::{is_mirror, is_static};
use super::sizes;
use super::state::spec;
use crate::node::allocatable::{CPU, MEMORY};
use coracle_api::amounts::Amounts;
use coracle_api::pod_spec::resources;
use coracle_api::quantity::{Format, Quantity};
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

/// With the overhead of its runtime.
pub fn requests(pod: &Pod) -> Amounts {
    let spec = serde_json::to_value(spec(pod)).unwrap_or_default();
    let mut all = resources::of_pod(&spec, "requests");
    all.add(&Amounts::of(&spec["overhead"]));
    all
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
    let spec = serde_json::to_value(spec(pod)).unwrap_or_default();
    let mut all = resources::of_pod(&spec, "limits");
    let overhead = Amounts::of(&spec["overhead"]);
    let limited = overhead.iter().filter(|(name, _)| all.has(name));
    let limited: Amounts = limited
        .map(|(name, amount)| (name.to_owned(), amount))
        .collect();
    all.add(&limited);
    all
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
