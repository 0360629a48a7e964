//! What is filled into an autoscaler.

use crate::json;
use crate::object::Object;
use crate::pod_spec::defaults::canonical;
use serde_json::{Value, json};

/// Percent of the requested CPU, where no other measure is named.
const CPU_PERCENT: i64 = 80;

pub fn autoscaler(object: &mut Object) {
    if let Some(spec) = json::spec_mut(object.root_mut()) {
        json::default(spec, "minReplicas", 1);
        if json::list(spec, "metrics").is_empty() {
            spec["metrics"] = cpu_metrics();
        }
        for metric in json::list_mut(spec, "metrics") {
            quantities(metric);
        }
        if let Some(behavior) = json::object_mut(spec, "behavior") {
            rules(behavior, "scaleUp", scale_up());
            rules(behavior, "scaleDown", scale_down());
        }
    }
    status(object);
}

pub fn cpu_metrics() -> Value {
    json!([{
        "type": "Resource",
        "resource": {
            "name": "cpu",
            "target": { "type": "Utilization", "averageUtilization": CPU_PERCENT },
        },
    }])
}

/// Fields that are always shown.
pub fn status(object: &mut Object) {
    let root = object.root_mut();
    json::default_in(root, "status", json!({}));
    if let Some(status) = root.get_mut("status").filter(|status| status.is_object()) {
        json::default(status, "desiredReplicas", 0);
        json::default(status, "currentMetrics", Value::Null);
        for metric in json::list_mut(status, "currentMetrics") {
            quantities(metric);
        }
    }
}

pub fn first_autoscaler(object: &mut Object) {
    if let Some(spec) = json::spec_mut(object.root_mut()) {
        json::default(spec, "minReplicas", 1);
    }
    first_status(object);
}

pub fn first_status(object: &mut Object) {
    let root = object.root_mut();
    json::default_in(root, "status", json!({}));
    if let Some(status) = root.get_mut("status") {
        json::default(status, "currentReplicas", 0);
        json::default(status, "desiredReplicas", 0);
    }
}

/// A metric, or the state of one.
fn quantities(metric: &mut Value) {
    const SOURCES: [&str; 5] = [
        "object",
        "pods",
        "resource",
        "containerResource",
        "external",
    ];
    for source in SOURCES {
        let Some(source) = json::object_mut(metric, source) else {
            continue;
        };
        for side in ["target", "current"] {
            let Some(side) = json::object_mut(source, side) else {
                continue;
            };
            for name in ["value", "averageValue"] {
                if let Some(quantity) = side.get_mut(name) {
                    canonical(quantity);
                }
            }
        }
    }
}

fn scale_up() -> Value {
    json!({
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [
            { "type": "Pods", "value": 4, "periodSeconds": 15 },
            { "type": "Percent", "value": 100, "periodSeconds": 15 },
        ],
    })
}

/// How long it waits before it removes pods is the controller's to say.
fn scale_down() -> Value {
    json!({
        "selectPolicy": "Max",
        "policies": [{ "type": "Percent", "value": 100, "periodSeconds": 15 }],
    })
}

fn rules(behavior: &mut Value, name: &str, defaults: Value) {
    json::default(behavior, name, json!({}));
    let own = &mut behavior[name];
    let Value::Object(defaults) = defaults else {
        return;
    };
    for (name, value) in defaults {
        json::default(own, &name, value);
    }
    if let Some(tolerance) = own.get_mut("tolerance") {
        canonical(tolerance);
    }
}
