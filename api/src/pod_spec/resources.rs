//! What a pod asks of a node, and the class of service that follows from it.

use crate::json;
use crate::quantity::Quantity;
use serde_json::Value;
use std::collections::BTreeMap;

/// True for an init container that keeps running beside the others.
pub fn is_sidecar(init_container: &Value) -> bool {
    json::text(init_container, "restartPolicy") == "Always"
}

/// True for a resource outside Kubernetes' own, such as `example.com/gpu`.
pub fn is_extended(name: &str) -> bool {
    let in_quota = format!("requests.{name}");
    let is_named = || crate::names::qualified_name(&in_quota).is_empty();
    !is_native(name) && !name.starts_with("requests.") && is_named()
}

/// True for a resource of Kubernetes' own.
pub fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn asked(container: &Value, name: &str) -> Quantity {
    let value = json::at(container, &["resources", "requests", name]);
    Quantity::from_value(value).unwrap_or(Quantity::ZERO)
}

/// What the containers together request of one resource: those that run together are added, an
/// init container counts for as long as it runs, beside the sidecars before it.
pub fn requested(spec: &Value, name: &str) -> Quantity {
    let mut together = Quantity::ZERO;
    for container in json::list(spec, "containers") {
        together = together.plus(asked(container, name));
    }
    let mut sidecars = Quantity::ZERO;
    let mut highest = Quantity::ZERO;
    for container in json::list(spec, "initContainers") {
        let own = asked(container, name);
        if is_sidecar(container) {
            together = together.plus(own);
            sidecars = sidecars.plus(own);
            highest = highest.max(sidecars);
        } else {
            highest = highest.max(sidecars.plus(own));
        }
    }
    together.max(highest)
}

/// `Guaranteed`, `Burstable` or `BestEffort`, by the rules of quality of service.
pub fn quality_of_service(spec: &Value) -> &'static str {
    let pod_level = json::get(spec, "resources");
    let mut requests = BTreeMap::new();
    let mut limits = BTreeMap::new();
    let mut guaranteed = true;
    // Whoever says anything for the pod says all of it, even with nothing.
    if json::has(spec, "resources") {
        add(&mut requests, json::get(pod_level, "requests"));
        let limited = add(&mut limits, json::get(pod_level, "limits"));
        guaranteed = limited == 2;
    } else {
        for list in ["containers", "initContainers"] {
            for container in json::list(spec, list) {
                let resources = json::get(container, "resources");
                add(&mut requests, json::get(resources, "requests"));
                let limited = add(&mut limits, json::get(resources, "limits"));
                guaranteed &= limited == 2;
            }
        }
    }
    if requests.is_empty() && limits.is_empty() {
        return "BestEffort";
    }
    let equal = requests.len() == limits.len()
        && requests
            .iter()
            .all(|(name, asked)| limits.get(name) == Some(asked));
    if guaranteed && equal {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Adds the cpu and memory of `list`, and returns how many of the two it has.
fn add(sums: &mut BTreeMap<&'static str, Quantity>, list: &Value) -> usize {
    let mut count = 0;
    for name in ["cpu", "memory"] {
        let Ok(quantity) = Quantity::from_value(json::get(list, name)) else {
            continue;
        };
        if quantity > Quantity::ZERO {
            let sum = sums.entry(name).or_insert(Quantity::ZERO);
            *sum = sum.plus(quantity);
            count += 1;
        }
    }
    count
}
