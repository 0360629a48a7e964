//! The LimitRanges of a namespace: defaults for containers that say nothing, and bounds on what
//! containers, pods and claims may ask for.

use super::{Attributes, Operation};
use crate::view::View;
use coracle_api::amounts::Amounts;
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::pod_spec::resources;
use coracle_api::quantity::Quantity;
use coracle_api::status::{Status, aggregate};
use serde_json::{Value, json};

const ANNOTATION: &str = "kubernetes.io/limit-ranger";
/// Above this, thousandths do not fit and whole units are compared.
const MILLI_UNITS_MAX: i64 = i64::MAX / 1000;

/// Upstream's quantities of a list in a LimitRange: name and amount.
type Bound<'a> = (&'a str, Quantity);

pub fn admit(view: &dyn View, object: &mut Object, asked: &Attributes<'_>) {
    if !asked.is("", "pods") || !concerns(asked) {
        return;
    }
    for range in view.list("", "limitranges", Some(asked.namespace)) {
        fill_in(object, range.list(&["spec", "limits"]));
    }
}

pub fn validate(view: &dyn View, object: &Object, asked: &Attributes<'_>) -> Result<(), Status> {
    if !concerns(asked) {
        return Ok(());
    }
    for range in view.list("", "limitranges", Some(asked.namespace)) {
        let limits = range.list(&["spec", "limits"]);
        let spec = object.get(&["spec"]).unwrap_or(&json::NULL);
        let errors = if asked.is("", "pods") {
            of_pod(limits, spec)
        } else {
            of_claim(limits, spec)
        };
        if !errors.is_empty() {
            return Err(asked.forbidden(Some(object), aggregate(&errors)));
        }
    }
    Ok(())
}

/// New pods, resized pods, and claims. Other updates of pods cannot change what is bounded here.
fn concerns(asked: &Attributes<'_>) -> bool {
    let is_one = match (asked.subresource, asked.operation) {
        ("resize", Operation::Update) => asked.is("", "pods"),
        ("", Operation::Create) => asked.is("", "pods") || asked.is("", "persistentvolumeclaims"),
        ("", Operation::Update) => asked.is("", "persistentvolumeclaims"),
        _ => false,
    };
    is_one && !asked.old.is_some_and(Object::is_deleting)
}

/// Containers get the defaults for what they do not mention, and the pod says what was set.
fn fill_in(pod: &mut Object, limits: &[Value]) {
    let for_containers = || {
        let limits = limits.iter();
        limits.filter(|limit| json::text(limit, "type") == "Container")
    };
    let defaults = |field| {
        let entries = for_containers().flat_map(|limit| json::entries(limit, field));
        entries.collect::<std::collections::BTreeMap<_, _>>()
    };
    let (of_requests, of_limits) = (defaults("defaultRequest"), defaults("default"));
    let mut said = Vec::new();
    for (list, what) in [
        ("containers", "container"),
        ("initContainers", "init container"),
    ] {
        let Some(containers) = pod.get_mut(&["spec", list]).and_then(Value::as_array_mut) else {
            continue;
        };
        for container in containers {
            let name = json::text(container, "name").to_owned();
            for (field, word, defaults) in [
                ("requests", "request", &of_requests),
                ("limits", "limit", &of_limits),
            ] {
                let missing: Vec<_> = defaults
                    .iter()
                    .filter(|(key, _)| {
                        let own = json::at(container, &["resources", field]);
                        own.get(**key).is_none()
                    })
                    .collect();
                if missing.is_empty() {
                    continue;
                }
                let names: Vec<&str> = missing.iter().map(|(key, _)| **key).collect();
                said.push(format!("{} {word} for {what} {name}", names.join(", ")));
                for (key, value) in missing {
                    set(container, field, key, value);
                }
            }
        }
    }
    if !said.is_empty() {
        let text = format!("LimitRanger plugin set: {}", said.join("; "));
        pod.set(&["metadata", "annotations", ANNOTATION], text.into());
    }
}

fn set(container: &mut Value, field: &str, key: &str, value: &Value) {
    for (path, name) in [("", "resources"), ("resources", field)] {
        let parent = match path {
            "" => &mut *container,
            inner => &mut container[inner],
        };
        json::default(parent, name, json!({}));
    }
    container["resources"][field][key] = value.clone();
}

fn bounds<'a>(limit: &'a Value, field: &str) -> impl Iterator<Item = Bound<'a>> {
    json::entries(limit, field)
        .filter_map(|(name, value)| Some((name, Quantity::from_value(value).ok()?)))
}

fn of_pod(limits: &[Value], spec: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    for limit in limits {
        match json::text(limit, "type") {
            "Container" => {
                let init = json::list(spec, "initContainers");
                for container in json::list(spec, "containers").iter().chain(init) {
                    let list = |field| resources::asked(container, field);
                    check(
                        limit,
                        "Container",
                        &list("requests"),
                        &list("limits"),
                        &mut errors,
                    );
                }
            }
            "Pod" => {
                let total = |field| resources::of_pod(spec, field);
                check(
                    limit,
                    "Pod",
                    &total("requests"),
                    &total("limits"),
                    &mut errors,
                );
            }
            _ => {}
        }
    }
    errors
}

/// Claims have requests alone.
fn of_claim(limits: &[Value], spec: &Value) -> Vec<String> {
    const TYPE: &str = "PersistentVolumeClaim";
    let requests = resources::asked(spec, "requests");
    let mut errors = Vec::new();
    let limits = limits.iter();
    for limit in limits.filter(|limit| json::text(limit, "type") == TYPE) {
        for bound in bounds(limit, "min") {
            errors.extend(below(TYPE, bound, &requests, &Amounts::default()));
        }
        for (name, most) in bounds(limit, "max") {
            let Some(request) = requests.get(name) else {
                errors.push(format!(
                    "maximum {name} usage per {TYPE} is {most}.  No request is specified"
                ));
                continue;
            };
            if is_less(most, request) {
                errors.push(format!(
                    "maximum {name} usage per {TYPE} is {most}, but request is {request}"
                ));
            }
        }
    }
    errors
}

fn check(
    limit: &Value,
    what: &str,
    requests: &Amounts,
    limits: &Amounts,
    errors: &mut Vec<String>,
) {
    errors.extend(bounds(limit, "min").filter_map(|bound| below(what, bound, requests, limits)));
    errors.extend(bounds(limit, "max").filter_map(|bound| above(what, bound, requests, limits)));
    let ratios = bounds(limit, "maxLimitRequestRatio");
    errors.extend(ratios.filter_map(|bound| out_of_ratio(what, bound, requests, limits)));
}

/// By thousandths where all fit, else by whole units.
fn is_less(a: Quantity, b: Quantity) -> bool {
    if a.value() <= MILLI_UNITS_MAX && b.value() <= MILLI_UNITS_MAX {
        a.milli_value() < b.milli_value()
    } else {
        a.value() < b.value()
    }
}

fn below(
    what: &str,
    (name, least): Bound<'_>,
    requests: &Amounts,
    limits: &Amounts,
) -> Option<String> {
    let start = format!("minimum {name} usage per {what} is {least}");
    let Some(request) = requests.get(name) else {
        return Some(format!("{start}.  No request is specified"));
    };
    if is_less(request, least) {
        return Some(format!("{start}, but request is {request}"));
    }
    let limit = limits.get(name).filter(|limit| is_less(*limit, least));
    limit.map(|limit| format!("{start}, but limit is {limit}"))
}

fn above(
    what: &str,
    (name, most): Bound<'_>,
    requests: &Amounts,
    limits: &Amounts,
) -> Option<String> {
    let start = format!("maximum {name} usage per {what} is {most}");
    let Some(limit) = limits.get(name) else {
        return Some(format!("{start}.  No limit is specified"));
    };
    if is_less(most, limit) {
        return Some(format!("{start}, but limit is {limit}"));
    }
    let request = requests.get(name).filter(|request| is_less(most, *request));
    request.map(|request| format!("{start}, but request is {request}"))
}

fn out_of_ratio(
    what: &str,
    (name, most): Bound<'_>,
    requests: &Amounts,
    limits: &Amounts,
) -> Option<String> {
    let start = format!("{name} max limit to request ratio per {what} is {most}");
    let (request, limit) = (requests.get(name), limits.get(name));
    let observed = |amount: Option<Quantity>, by_milli: bool| {
        amount.map_or(0, |amount| {
            if by_milli {
                amount.milli_value()
            } else {
                amount.value()
            }
        })
    };
    let units = [request, limit].map(|amount| observed(amount, false));
    let by_milli = units
        .into_iter()
        .chain([most.value()])
        .all(|value| value <= MILLI_UNITS_MAX);
    let [request, limit] = [request, limit].map(|amount| observed(amount, by_milli));
    if request == 0 {
        return Some(format!(
            "{start}, but no request is specified or request is 0"
        ));
    }
    if limit == 0 {
        return Some(format!("{start}, but no limit is specified or limit is 0"));
    }
    let ratio = limit as f64 / request as f64;
    let is_over = if most.value() <= MILLI_UNITS_MAX {
        ratio * 1000.0 > most.milli_value() as f64
    } else {
        ratio > most.value() as f64
    };
    is_over.then(|| format!("{start}, but provided ratio is {ratio:.6}"))
}
