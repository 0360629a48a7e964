//! What a pod asks for as a whole: the sum over its containers, at least what its init containers
//! need one after the other, or what is said of the pod itself. Pure.

use coracle_api::json;
use coracle_api::quantity::Quantity;
use serde_json::Value;
use std::collections::BTreeMap;

pub type Amounts = BTreeMap<String, Quantity>;

/// What can be said of a pod as a whole.
const OF_PODS: [&str; 2] = ["cpu", "memory"];

/// Reads a resource list; what is no quantity was refused before it came here.
pub fn amounts(list: &Value) -> Amounts {
    let entries = list.as_object().into_iter().flatten();
    entries
        .filter_map(|(name, value)| Some((name.clone(), Quantity::from_value(value).ok()?)))
        .collect()
}

/// The sum of `requests` or `limits`, as `field` says, of a pod's spec; without its overhead.
pub fn of_pod(spec: &Value, field: &str) -> Amounts {
    let of = |container: &Value| amounts(json::at(container, &["resources", field]));
    let mut total = Amounts::new();
    for container in json::list(spec, "containers") {
        add(&mut total, &of(container));
    }
    // Sidecars start in turn with the other init containers, and stay.
    let (mut sidecars, mut starting) = (Amounts::new(), Amounts::new());
    for container in json::list(spec, "initContainers") {
        let own = of(container);
        let mut needed = sidecars.clone();
        add(&mut needed, &own);
        if json::text(container, "restartPolicy") == "Always" {
            add(&mut total, &own);
            add(&mut sidecars, &own);
        }
        raise(&mut starting, &needed);
    }
    raise(&mut total, &starting);
    let of_pod = amounts(json::at(spec, &["resources", field]));
    total.extend(
        of_pod
            .into_iter()
            .filter(|(name, _)| OF_PODS.contains(&name.as_str())),
    );
    total
}

pub fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = total.get(name).map_or(*amount, |known| known.plus(*amount));
        total.insert(name.clone(), sum);
    }
}

/// To the greater of the two, resource by resource.
fn raise(total: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        if total.get(name).is_none_or(|known| amount > known) {
            total.insert(name.clone(), *amount);
        }
    }
}
