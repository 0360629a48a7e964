//! What is wrong with an autoscaler, in its stored form.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::object::Object;
use crate::pod_spec::validate::resources::container_resource_name;
use crate::quantity::Quantity;
use crate::{json, names};
use serde_json::Value;

const PERIOD_SECONDS_MAX: i64 = 1800;
const STABILIZATION_SECONDS_MAX: i64 = 3600;

const TYPES: [&str; 5] = [
    "ContainerResource",
    "External",
    "Object",
    "Pods",
    "Resource",
];

/// What an `apiVersion` of a reference may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Any,
    Valid,
    WithGroup,
}

pub fn spec(object: &Object, old: Option<&Object>) -> ErrorList {
    let path = Path::root("spec");
    let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
    let before = old.and_then(|old| old.get(&["spec"]));
    let mut errors = replicas(spec, before, &path);
    errors.extend(reference(
        json::get(spec, "scaleTargetRef"),
        target_version(spec, before),
        &path.child("scaleTargetRef"),
    ));
    errors.extend(metrics(spec, before, &path.child("metrics")));
    if let Some(behavior) = json::some(spec, "behavior") {
        let path = path.child("behavior");
        for name in ["scaleUp", "scaleDown"] {
            if let Some(rules) = json::some(behavior, name) {
                errors.extend(scaling_rules(rules, &path.child(name)));
            }
        }
    }
    errors
}

fn replicas(spec: &Value, before: Option<&Value>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let least = json::int(spec, "minReplicas");
    let most = json::int(spec, "maxReplicas").unwrap_or(0);
    let had_none = before.is_some_and(|before| json::int(before, "minReplicas") == Some(0));
    let bound = i64::from(!had_none);
    if let Some(least) = least.filter(|least| *least < bound) {
        let detail = format!("must be greater than or equal to {bound}");
        let path = path.child("minReplicas");
        errors.push(FieldError::invalid(&path, least, detail));
    }
    let path = path.child("maxReplicas");
    if most == 0 {
        errors.push(FieldError::required(
            &path,
            "must be set and greater than 0",
        ));
    } else if most < 0 {
        let detail = "must be greater than or equal to 1";
        errors.push(FieldError::invalid(&path, most, detail));
    }
    if least.is_some_and(|least| most < least) {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid(&path, most, detail));
    }
    errors
}

/// A target that was there stays good; only replication controllers need no group.
fn target_version(spec: &Value, before: Option<&Value>) -> Version {
    let target = json::get(spec, "scaleTargetRef");
    let kept = before.is_some_and(|before| {
        let before = json::get(before, "scaleTargetRef");
        ["apiVersion", "kind"]
            .iter()
            .all(|name| json::text(before, name) == json::text(target, name))
    });
    if kept {
        Version::Any
    } else if json::text(target, "kind") == "ReplicationController" {
        Version::Valid
    } else {
        Version::WithGroup
    }
}

fn reference(reference: &Value, version: Version, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    checks::required_segment(&mut errors, reference, "kind", path);
    checks::required_segment(&mut errors, reference, "name", path);
    if let Some(detail) = version_fault(reference, version) {
        let value = json::text(reference, "apiVersion");
        errors.push(FieldError::invalid(
            &path.child("apiVersion"),
            value,
            detail,
        ));
    }
    errors
}

fn version_fault(reference: &Value, version: Version) -> Option<String> {
    let text = json::text(reference, "apiVersion");
    match (version, text.matches('/').count()) {
        (Version::Any, _) => None,
        (_, 2..) => Some(format!("unexpected GroupVersion string: {text}")),
        (Version::WithGroup, 0) => Some("apiVersion must specify API group".to_owned()),
        (Version::WithGroup, _) if text.starts_with('/') => {
            Some("apiVersion must specify API group".to_owned())
        }
        _ => None,
    }
}

fn metrics(spec: &Value, before: Option<&Value>, path: &Path) -> ErrorList {
    let was_wrong = before.is_some_and(|before| {
        json::list(before, "metrics").iter().any(|metric| {
            json::text(metric, "type") == "Object"
                && json::some(metric, "object").is_some_and(|object| {
                    let described = json::get(object, "describedObject");
                    version_fault(described, Version::Valid).is_some()
                })
        })
    });
    let version = if was_wrong {
        Version::Any
    } else {
        Version::Valid
    };
    let mut errors = ErrorList::new();
    let all = json::list(spec, "metrics");
    for (index, one) in all.iter().enumerate() {
        errors.extend(metric(one, version, &path.index(index)));
    }
    let scales_from_none = all
        .iter()
        .any(|metric| matches!(json::text(metric, "type"), "Object" | "External"));
    if json::int(spec, "minReplicas") == Some(0) && !scales_from_none {
        let detail = "must specify at least one Object or External metric to support scaling to \
                      zero replicas";
        errors.push(FieldError::forbidden(path, detail));
    }
    errors
}

fn metric(metric: &Value, version: Version, path: &Path) -> ErrorList {
    const ORDER: [&str; 5] = [
        "object",
        "external",
        "pods",
        "resource",
        "containerResource",
    ];
    let mut errors = ErrorList::new();
    let kind = json::text(metric, "type");
    let type_path = path.child("type");
    if kind.is_empty() {
        let detail = "must specify a metric source type";
        errors.push(FieldError::required(&type_path, detail));
    }
    checks::one_of(&mut errors, kind, &TYPES, &type_path);
    let present: Vec<&str> = ORDER
        .into_iter()
        .filter(|name| json::has(metric, name))
        .collect();
    if let Some(first) = present.first() {
        let path = path.child(first);
        errors.extend(source(first, json::get(metric, first), version, &path));
    }
    let expected = match kind {
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "External" => "external",
        "ContainerResource" => "containerResource",
        _ => "",
    };
    if expected.is_empty() {
        // Upstream says so twice.
        checks::one_of(&mut errors, kind, &TYPES, &type_path);
    } else if !present.contains(&expected) {
        let detail = "must populate information for the given metric source";
        errors.push(FieldError::required(&path.child(expected), detail));
    }
    if present.len() != 1 {
        for name in present.iter().filter(|name| **name != expected) {
            let detail = "must populate the given metric source only";
            errors.push(FieldError::forbidden(&path.child(name), detail));
        }
    }
    errors
}

fn source(name: &str, source: &Value, version: Version, path: &Path) -> ErrorList {
    let target = json::get(source, "target");
    let target_path = path.child("target");
    let has = |name: &str| json::has(target, name);
    let mut errors = ErrorList::new();
    match name {
        "object" => errors.extend(reference(
            json::get(source, "describedObject"),
            version,
            &path.child("describedObject"),
        )),
        "resource" if json::text(source, "name").is_empty() => {
            let detail = "must specify a resource name";
            errors.push(FieldError::required(&path.child("name"), detail));
        }
        "containerResource" => errors.extend(container_source(source, path)),
        _ => {}
    }
    if matches!(name, "object" | "external" | "pods") {
        errors.extend(identity(json::get(source, "metric"), &path.child("metric")));
    }
    errors.extend(metric_target(target, &target_path));
    let by_value = matches!(name, "object" | "external");
    let missing = match name {
        "object" => "must set either a target value or averageValue",
        "external" => "must set either a target value for metric or a per-pod target",
        "pods" => "must specify a positive target averageValue",
        _ => "must set either a target raw value or a target utilization",
    };
    let (other, wanted) = match name {
        "pods" => ("averageValue", "averageValue"),
        _ if by_value => ("value", "averageValue"),
        _ => ("averageUtilization", "averageUtilization"),
    };
    if !has(other) && !has("averageValue") {
        errors.push(FieldError::required(&target_path.child(wanted), missing));
    }
    let (both, at) = match name {
        "external" => (
            "may not set both a target value for metric and a per-pod target",
            "value",
        ),
        _ => (
            "may not set both a target raw value and a target utilization",
            "averageValue",
        ),
    };
    let is_either = !matches!(name, "object" | "pods");
    if is_either && has(other) && has("averageValue") {
        errors.push(FieldError::forbidden(&target_path.child(at), both));
    }
    errors
}

fn container_source(source: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    match json::text(source, "name") {
        "" => {
            let detail = "must specify a resource name";
            errors.push(FieldError::required(&path.child("name"), detail));
        }
        name => errors.extend(container_resource_name(name, &path.child("name"))),
    }
    let container = json::text(source, "container");
    let path = path.child("container");
    if container.is_empty() {
        errors.push(FieldError::required(&path, "must specify a container"));
    } else {
        checks::each(&mut errors, &path, container, names::dns_label(container));
    }
    errors
}

fn identity(metric: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = json::text(metric, "name");
    let path = path.child("name");
    if name.is_empty() {
        errors.push(FieldError::required(&path, "must specify a metric name"));
    } else {
        checks::each(&mut errors, &path, name, names::path_segment(name));
    }
    errors
}

fn metric_target(target: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let kind = json::text(target, "type");
    let type_path = path.child("type");
    if kind.is_empty() {
        let detail = "must specify a metric target type";
        errors.push(FieldError::required(&type_path, detail));
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(&type_path, kind, detail));
    }
    for name in ["value", "averageValue"] {
        let Some(value) = json::some(target, name) else {
            continue;
        };
        let quantity = Quantity::from_value(value);
        if quantity.is_ok_and(|quantity| quantity.is_zero() || quantity.is_negative()) {
            let path = path.child(name);
            errors.push(FieldError::invalid(
                &path,
                value.clone(),
                "must be positive",
            ));
        }
    }
    if let Some(percent) = json::int(target, "averageUtilization").filter(|percent| *percent < 1) {
        let path = path.child("averageUtilization");
        errors.push(FieldError::invalid(
            &path,
            percent,
            "must be greater than 0",
        ));
    }
    errors
}

fn scaling_rules(rules: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(seconds) = json::int(rules, "stabilizationWindowSeconds") {
        let path = path.child("stabilizationWindowSeconds");
        if seconds < 0 {
            let detail = "must be greater than or equal to zero";
            errors.push(FieldError::invalid(&path, seconds, detail));
        }
        if seconds > STABILIZATION_SECONDS_MAX {
            let detail = format!("must be less than or equal to {STABILIZATION_SECONDS_MAX}");
            errors.push(FieldError::invalid(&path, seconds, detail));
        }
    }
    if let Some(policy) = json::some(rules, "selectPolicy").and_then(Value::as_str) {
        let supported = &["Disabled", "Max", "Min"];
        checks::one_of(&mut errors, policy, supported, &path.child("selectPolicy"));
    }
    let policies_path = path.child("policies");
    let policies = json::list(rules, "policies");
    if policies.is_empty() {
        let detail = "must specify at least one Policy";
        errors.push(FieldError::required(&policies_path, detail));
    }
    for (index, policy) in policies.iter().enumerate() {
        errors.extend(scaling_policy(policy, &policies_path.index(index)));
    }
    if let Some(tolerance) = json::some(rules, "tolerance")
        && Quantity::from_value(tolerance).is_ok_and(|tolerance| tolerance.is_negative())
    {
        let path = path.child("tolerance");
        let detail = names::MUST_NOT_BE_NEGATIVE;
        errors.push(FieldError::invalid(&path, tolerance.clone(), detail));
    }
    errors
}

fn scaling_policy(policy: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let kind = json::text(policy, "type");
    checks::one_of(&mut errors, kind, &["Percent", "Pods"], &path.child("type"));
    for name in ["value", "periodSeconds"] {
        let number = json::int(policy, name).unwrap_or(0);
        if number <= 0 {
            let detail = "must be greater than zero";
            errors.push(FieldError::invalid(&path.child(name), number, detail));
        }
    }
    let period = json::int(policy, "periodSeconds").unwrap_or(0);
    if period > PERIOD_SECONDS_MAX {
        let detail = format!("must be less than or equal to {PERIOD_SECONDS_MAX}");
        let path = path.child("periodSeconds");
        errors.push(FieldError::invalid(&path, period, detail));
    }
    errors
}

pub fn status(object: &Object) -> ErrorList {
    let status = object.get(&["status"]).unwrap_or(&Value::Null);
    let path = Path::root("status");
    let mut errors = ErrorList::new();
    checks::nonnegative(&mut errors, status, "currentReplicas", &path);
    checks::nonnegative(&mut errors, status, "desiredReplicas", &path);
    errors
}
