//! What a pod asks of a node, and the class of service that follows from it.

use crate::amounts::Amounts;
use crate::json;
use crate::quantity::Quantity;
use serde_json::Value;
use std::collections::BTreeMap;

/// The size of the pages follows.
pub const HUGE_PAGES: &str = "hugepages-";

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

/// Whether a pod may say this of itself as a whole.
pub fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with(HUGE_PAGES)
}

/// What a container asks for: its `requests` or `limits`, as `what` says.
pub fn asked(container: &Value, what: &str) -> Amounts {
    Amounts::of(json::at(container, &["resources", what]))
}

/// What the containers of a pod come to: those that run together are added, an init container
/// counts for as long as it runs, beside the sidecars before it. `of` says what one container
/// comes to, and is told whether it is there for as long as the pod.
pub fn together(spec: &Value, of: impl Fn(&Value, bool) -> Amounts) -> Amounts {
    let mut all = Amounts::default();
    for container in json::list(spec, "containers") {
        all.add(&of(container, true));
    }
    let mut sidecars = Amounts::default();
    let mut highest = Amounts::default();
    for container in json::list(spec, "initContainers") {
        let stays = is_sidecar(container);
        let mut own = of(container, stays);
        if stays {
            all.add(&own);
            sidecars.add(&own);
            highest.raise_to(&sidecars);
        } else {
            own.add(&sidecars);
            highest.raise_to(&own);
        }
    }
    all.raise_to(&highest);
    all
}

/// What a pod asks for as a whole, without its overhead. Looks at its spec alone: what shall be,
/// not what is.
pub fn of_pod(spec: &Value, what: &str) -> Amounts {
    let mut all = together(spec, |container, _| asked(container, what));
    override_by_pod(&mut all, spec, what, is_pod_level);
    all
}

/// What is said of the pod as a whole takes the place of what its containers come to, in those
/// resources that pass.
pub fn override_by_pod(all: &mut Amounts, spec: &Value, what: &str, passes: fn(&str) -> bool) {
    let of_pod = Amounts::of(json::at(spec, &["resources", what]));
    for (name, amount) in of_pod.iter().filter(|(name, _)| passes(name)) {
        all.set(name, amount);
    }
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
