//! The two views of an autoscaler. The first version knows CPU only; what else there is stands in
//! annotations, which the second version does not have.

use super::{defaults, go_json, metrics};
use crate::json;
use crate::object::Object;
use serde_json::{Map, Value, json};

const FIRST_VERSION: &str = "autoscaling/v1";
const STORED_VERSION: &str = "autoscaling/v2";

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const OURS: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// A copy in the stored form, from either form.
pub fn stored(object: &Object) -> Object {
    let mut object = object.clone();
    to_stored(&mut object);
    object
}

pub fn to_stored(object: &mut Object) {
    if object.api_version() != FIRST_VERSION {
        return;
    }
    object.set(&["apiVersion"], STORED_VERSION.into());
    let annotated = |name: &str| serde_json::from_str::<Value>(object.annotation(name)?).ok();
    let lists = [METRICS, CURRENT_METRICS, CONDITIONS].map(|name| match annotated(name) {
        Some(Value::Array(items)) => Some(items),
        _ => None,
    });
    let [other_metrics, current_metrics, conditions] = lists;
    let behavior = annotated(BEHAVIOR).filter(|behavior| !json::is_empty(behavior));
    drop_annotations(object);
    if let Some(spec) = object.get_mut(&["spec"]).and_then(Value::as_object_mut) {
        let mut all: Vec<Value> = other_metrics
            .iter()
            .flatten()
            .map(metrics::second_spec)
            .collect();
        if let Some(percent) = spec.remove("targetCPUUtilizationPercentage")
            && !percent.is_null()
        {
            all.push(json!({
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "target": { "type": "Utilization", "averageUtilization": percent },
                },
            }));
        }
        if all.is_empty() {
            spec.insert("metrics".into(), defaults::cpu_metrics());
        } else {
            spec.insert("metrics".into(), all.into());
        }
        if let Some(behavior) = behavior {
            spec.insert("behavior".into(), lower_case(&behavior));
        }
    }
    status_to_stored(object, current_metrics, conditions);
    defaults::autoscaler(object);
}

fn status_to_stored(
    object: &mut Object,
    current_metrics: Option<Vec<Value>>,
    conditions: Option<Vec<Value>>,
) {
    let Some(status) = object.get_mut(&["status"]).and_then(Value::as_object_mut) else {
        return;
    };
    if let Some(percent) = status.remove("currentCPUUtilizationPercentage")
        && !percent.is_null()
    {
        let current = json!({ "averageUtilization": percent });
        let resource = json!({ "name": "cpu", "current": current });
        let metric = json!({ "type": "Resource", "resource": resource });
        status.insert("currentMetrics".into(), json!([metric]));
    }
    if let Some(all) = current_metrics {
        let all: Vec<Value> = all.iter().map(metrics::second_status).collect();
        status.insert("currentMetrics".into(), all.into());
    }
    if let Some(all) = conditions {
        status.insert("conditions".into(), all.into());
    }
    if status.get("currentReplicas").and_then(Value::as_i64) == Some(0) {
        status.remove("currentReplicas");
    }
}

pub fn from_stored(object: &mut Object) {
    if object.api_version() != STORED_VERSION {
        return;
    }
    object.set(&["apiVersion"], FIRST_VERSION.into());
    drop_annotations(object);
    let mut annotations: Vec<(&str, Value)> = Vec::new();
    if let Some(spec) = object.get_mut(&["spec"]).and_then(Value::as_object_mut) {
        let all = spec.remove("metrics").unwrap_or_default();
        let all = all.as_array().map_or(&[][..], Vec::as_slice);
        if let Some(percent) = all.iter().find_map(cpu_percent) {
            spec.insert("targetCPUUtilizationPercentage".into(), percent);
        }
        let others = all.iter().filter(|metric| cpu_percent(metric).is_none());
        let others: Vec<Value> = others.map(metrics::first_spec).collect();
        if !others.is_empty() {
            annotations.push((METRICS, others.into()));
        }
        let behavior = spec
            .remove("behavior")
            .filter(|behavior| !behavior.is_null());
        if let Some(behavior) = behavior {
            annotations.push((BEHAVIOR, upper_case(&behavior)));
        }
    }
    if let Some(status) = object.get_mut(&["status"]).and_then(Value::as_object_mut) {
        let all = status.remove("currentMetrics").unwrap_or_default();
        let all = all.as_array().map_or(&[][..], Vec::as_slice);
        if let Some(percent) = all.iter().rev().find_map(current_cpu_percent) {
            status.insert("currentCPUUtilizationPercentage".into(), percent);
        }
        if !all.is_empty() {
            let all: Vec<Value> = all.iter().map(metrics::first_status).collect();
            annotations.push((CURRENT_METRICS, all.into()));
        }
        let conditions = status.remove("conditions");
        if let Some(conditions) = conditions.filter(|all| !json::is_empty(all)) {
            annotations.push((CONDITIONS, conditions));
        }
    }
    for (name, value) in annotations {
        let text = go_json::write(&value);
        object.set(&["metadata", "annotations", name], text.into());
    }
    defaults::first_status(object);
}

fn drop_annotations(object: &mut Object) {
    let path = ["metadata", "annotations"];
    if let Some(Value::Object(annotations)) = object.get_mut(&path) {
        let had = annotations.len();
        annotations.retain(|name, _| !OURS.contains(&name.as_str()));
        if annotations.is_empty() && had > 0 {
            object.remove(&path);
        }
    }
}

fn cpu_percent(metric: &Value) -> Option<Value> {
    let resource = json::some(metric, "resource")?;
    let is_cpu = json::text(metric, "type") == "Resource" && json::text(resource, "name") == "cpu";
    let percent = json::some(json::get(resource, "target"), "averageUtilization");
    percent.filter(|_| is_cpu).cloned()
}

fn current_cpu_percent(metric: &Value) -> Option<Value> {
    let resource = json::some(metric, "resource")?;
    let is_cpu = json::text(metric, "type") == "Resource" && json::text(resource, "name") == "cpu";
    let percent = json::some(json::get(resource, "current"), "averageUtilization");
    percent.filter(|_| is_cpu).cloned()
}

const RULES: [(&str, &str); 2] = [("scaleUp", "ScaleUp"), ("scaleDown", "ScaleDown")];
const RULE: [(&str, &str); 3] = [
    ("stabilizationWindowSeconds", "StabilizationWindowSeconds"),
    ("selectPolicy", "SelectPolicy"),
    ("tolerance", "Tolerance"),
];
const POLICY: [(&str, &str); 3] = [
    ("type", "Type"),
    ("value", "Value"),
    ("periodSeconds", "PeriodSeconds"),
];

/// The behaviour as upstream annotates it: with the names that its fields have in Go, and nulls.
fn upper_case(behavior: &Value) -> Value {
    let mut out = Map::new();
    for (lower, upper) in RULES {
        let mut rules = Map::new();
        let own = json::get(behavior, lower);
        for (lower, upper) in RULE {
            rules.insert(upper.to_owned(), json::get(own, lower).clone());
        }
        let policies = json::list(own, "policies").iter().map(|policy| {
            let fields = POLICY.map(|(lower, upper)| {
                let value = json::get(policy, lower).clone();
                (upper.to_owned(), value)
            });
            Value::Object(Map::from_iter(fields))
        });
        rules.insert("Policies".to_owned(), policies.collect());
        let rules = if own.is_null() {
            Value::Null
        } else {
            rules.into()
        };
        out.insert(upper.to_owned(), rules);
    }
    out.into()
}

/// Go reads names without regard to case.
fn field<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let mut fields = value.as_object()?.iter();
    let (_, value) = fields.find(|(own, _)| own.eq_ignore_ascii_case(name))?;
    Some(value).filter(|value| !value.is_null())
}

fn lower_case(behavior: &Value) -> Value {
    let mut out = json!({});
    for (lower, _) in RULES {
        let Some(own) = field(behavior, lower) else {
            continue;
        };
        let mut rules = json!({});
        for (lower, _) in RULE {
            if let Some(value) = field(own, lower) {
                rules[lower] = value.clone();
            }
        }
        if let Some(Value::Array(policies)) = field(own, "policies") {
            let policies = policies.iter().map(|policy| {
                let fields = POLICY.iter().filter_map(|(lower, _)| {
                    Some(((*lower).to_owned(), field(policy, lower)?.clone()))
                });
                Value::Object(fields.collect())
            });
            rules["policies"] = policies.collect();
        }
        out[lower] = rules;
    }
    out
}
