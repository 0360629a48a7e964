//! What pods use: themselves, and the requests and limits of their containers.
//!
//! A pod that has ended, or that should have been gone by now, uses no more than its place in the
//! store.

use super::Scope;
use crate::amounts::Amounts;
use crate::json;
use crate::object::Object;
use crate::pod_spec::resources;
use crate::timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const NAMES: [&str; 11] = [
    COUNT,
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];
const COUNT: &str = "count/pods";
const REQUESTS: &str = "requests.";
/// A quota on one of these obliges every container to say its own. Upstream regrets it, and keeps
/// it to these.
const OBLIGATORY: [&str; 6] = [
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
];

pub fn counts(name: &str) -> bool {
    NAMES.contains(&name)
        || is_huge_pages(name)
        || name.strip_prefix(REQUESTS).is_some_and(is_huge_pages)
        || is_extended_request(name)
}

fn is_huge_pages(name: &str) -> bool {
    name.starts_with(resources::HUGE_PAGES)
}

/// Of extended resources only requests are counted, as they are never overcommitted.
pub fn is_extended_request(name: &str) -> bool {
    let resource = name.strip_prefix(REQUESTS);
    resource.is_some_and(|resource| {
        !resources::is_native(name) || resource.starts_with(super::claims::IMPLICIT)
    })
}

/// `now` in seconds since 1970.
pub fn usage(pod: &Object, now: i64) -> Amounts {
    let mut usage = Amounts::default();
    usage.set_count(COUNT, 1);
    if is_charged(pod, now) {
        usage.add(&named(&requests(pod), &limits(pod)));
    }
    usage
}

/// False once a pod has ended, or its grace period is over and its node does not tell.
pub fn is_charged(pod: &Object, now: i64) -> bool {
    if matches!(pod.str(&["status", "phase"]), "Failed" | "Succeeded") {
        return false;
    }
    let gone_at = deleted_at(pod);
    gone_at.is_none_or(|at| now <= at)
}

/// When a pod that is being deleted is no longer charged.
fn deleted_at(pod: &Object) -> Option<i64> {
    let grace = pod.i64(&["metadata", "deletionGracePeriodSeconds"])?;
    let at = timestamp::parse(pod.str(&["metadata", "deletionTimestamp"]))?;
    Some(at.as_second().saturating_add(grace))
}

/// Requests and limits by their names in quotas.
fn named(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut all = Amounts::default();
    all.set_count("pods", 1);
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(amount) = requests.get(name) {
            all.set(name, amount);
            all.set(format!("{REQUESTS}{name}"), amount);
        }
        if let Some(amount) = limits.get(name) {
            all.set(format!("limits.{name}"), amount);
        }
    }
    for (name, amount) in requests.iter() {
        if is_huge_pages(name) {
            all.set(name, amount);
            all.set(format!("{REQUESTS}{name}"), amount);
        }
        if resources::is_extended(name) || name.starts_with(super::claims::IMPLICIT) {
            all.set(format!("{REQUESTS}{name}"), amount);
        }
    }
    all
}

/// Says which container leaves out what a quota obliges it to.
pub fn missing<'a>(pod: &Object, restricted: impl Iterator<Item = &'a str>) -> Result<(), String> {
    if has_pod_level(pod, "requests") || has_pod_level(pod, "limits") {
        return Ok(());
    }
    let obliged: Vec<&str> = restricted
        .filter(|name| OBLIGATORY.contains(name))
        .collect();
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for list in ["containers", "initContainers"] {
        for container in pod.list(&["spec", list]) {
            let resources = json::get(container, "resources");
            let of = |what| Amounts::of(json::get(resources, what));
            let said = named(&of("requests"), &of("limits"));
            for name in obliged.iter().filter(|name| !said.has(name)) {
                let names = missing.entry(name).or_default();
                names.insert(json::text(container, "name"));
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let each = missing.iter().map(|(name, containers)| {
        let containers: Vec<&str> = containers.iter().copied().collect();
        format!("{name} for: {}", containers.join(","))
    });
    let each: Vec<String> = each.collect();
    Err(format!("must specify {}", each.join("; ")))
}

fn has_pod_level(pod: &Object, what: &str) -> bool {
    let list = pod.get(&["spec", "resources", what]);
    let names = list.and_then(Value::as_object).into_iter().flatten();
    names
        .into_iter()
        .any(|(name, _)| resources::is_pod_level(name))
}

fn overhead(pod: &Object) -> Amounts {
    Amounts::of(pod.get(&["spec", "overhead"]).unwrap_or(&Value::Null))
}

fn requests(pod: &Object) -> Amounts {
    let mut all = together(pod, "requests");
    all.add(&overhead(pod));
    all
}

fn limits(pod: &Object) -> Amounts {
    let mut all = together(pod, "limits");
    // What has no limit gets none by its overhead.
    let limited = |name: &str| all.get(name).is_some_and(|amount| !amount.is_zero());
    let more = overhead(pod).only(limited);
    all.add(&more);
    all
}

fn together(pod: &Object, what: &str) -> Amounts {
    let spec = pod.get(&["spec"]).unwrap_or(&Value::Null);
    let mut all = resources::together(spec, |container, stays| {
        if stays {
            effective(pod, container, what)
        } else {
            resources::asked(container, what)
        }
    });
    resources::override_by_pod(&mut all, spec, what, resources::is_pod_level);
    all
}

/// What a container is charged for while it is resized: the most of what it shall have, has, and
/// was promised; what cannot be given is not charged for.
fn effective(pod: &Object, container: &Value, what: &str) -> Amounts {
    let spec = resources::asked(container, what);
    let status = container_status(pod, json::text(container, "name"));
    let Some(actual) = status.and_then(|status| json::some(status, "resources")) else {
        return spec;
    };
    let mut all = if is_resize_infeasible(pod) {
        Amounts::default()
    } else {
        spec
    };
    all.raise_to(&Amounts::of(json::get(actual, what)));
    if what == "requests" {
        let allocated = status.map(|status| json::get(status, "allocatedResources"));
        all.raise_to(&Amounts::of(allocated.unwrap_or(&Value::Null)));
    }
    all
}

fn container_status<'a>(pod: &'a Object, name: &str) -> Option<&'a Value> {
    let lists = ["initContainerStatuses", "containerStatuses"];
    let all = lists
        .iter()
        .flat_map(|list| pod.list(&["status", list]).iter());
    all.into_iter()
        .find(|status| json::text(status, "name") == name)
}

fn is_resize_infeasible(pod: &Object) -> bool {
    let conditions = pod.list(&["status", "conditions"]).iter();
    let mut pending =
        conditions.filter(|condition| json::text(condition, "type") == "PodResizePending");
    pending
        .next()
        .is_some_and(|condition| json::text(condition, "reason") == "Infeasible")
}

pub fn is_in(scope: &Scope, pod: &Object) -> bool {
    match scope.name.as_str() {
        "Terminating" => has_deadline(pod),
        "NotTerminating" => !has_deadline(pod),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => {
            let class = pod.str(&["spec", "priorityClassName"]);
            scope.selects((!class.is_empty()).then_some(class))
        }
        "CrossNamespacePodAffinity" => looks_across_namespaces(pod),
        _ => false,
    }
}

/// Whether a pod is bound to end.
pub fn has_deadline(pod: &Object) -> bool {
    let deadline = pod.i64(&["spec", "activeDeadlineSeconds"]);
    deadline.is_some_and(|seconds| seconds >= 0)
}

fn is_best_effort(pod: &Object) -> bool {
    let class = match pod.str(&["status", "qosClass"]) {
        "" => resources::quality_of_service(pod.get(&["spec"]).unwrap_or(&Value::Null)),
        class => class,
    };
    class == "BestEffort"
}

fn looks_across_namespaces(pod: &Object) -> bool {
    let looks = |term: &Value| {
        !json::list(term, "namespaces").is_empty() || json::has(term, "namespaceSelector")
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let terms = |when| pod.list(&["spec", "affinity", kind, when]).iter();
        terms("requiredDuringSchedulingIgnoredDuringExecution").any(looks)
            || terms("preferredDuringSchedulingIgnoredDuringExecution")
                .any(|weighted| looks(json::get(weighted, "podAffinityTerm")))
    })
}
