//! Metrics of an autoscaler in the form of the first version, and in that of the second.

use crate::json;
use crate::quantity::Quantity;
use serde_json::{Map, Value, json};

/// Kind of a metric, and the field that describes it.
const SOURCES: [&str; 5] = [
    "object",
    "pods",
    "resource",
    "containerResource",
    "external",
];

/// Puts fields that are there under new names.
fn renamed(from: &Value, names: &[(&str, &str)]) -> Map<String, Value> {
    names
        .iter()
        .filter_map(|(old, new)| Some(((*new).to_owned(), json::some(from, old)?.clone())))
        .collect()
}

/// A field that Go always writes.
fn always(map: &mut Map<String, Value>, name: &str, zero: impl Into<Value>) {
    json::default_in(map, name, zero);
}

/// A metric of the second version as one of the first.
pub fn first_spec(metric: &Value) -> Value {
    each(metric, |source, value| {
        let target = json::get(value, "target");
        let identity = json::get(value, "metric");
        let mut out = match source {
            "object" => {
                let mut out = renamed(
                    target,
                    &[("value", "targetValue"), ("averageValue", "averageValue")],
                );
                out.insert("target".into(), json::get(value, "describedObject").clone());
                out.extend(renamed(
                    identity,
                    &[("name", "metricName"), ("selector", "selector")],
                ));
                always(&mut out, "targetValue", "0");
                out
            }
            "pods" => {
                let mut out = renamed(target, &[("averageValue", "targetAverageValue")]);
                out.extend(renamed(
                    identity,
                    &[("name", "metricName"), ("selector", "selector")],
                ));
                always(&mut out, "targetAverageValue", "0");
                out
            }
            "external" => {
                let mut out = renamed(
                    target,
                    &[
                        ("value", "targetValue"),
                        ("averageValue", "targetAverageValue"),
                    ],
                );
                out.extend(renamed(
                    identity,
                    &[("name", "metricName"), ("selector", "metricSelector")],
                ));
                out
            }
            _ => {
                let mut out = renamed(
                    target,
                    &[
                        ("averageUtilization", "targetAverageUtilization"),
                        ("averageValue", "targetAverageValue"),
                    ],
                );
                out.extend(renamed(
                    value,
                    &[("name", "name"), ("container", "container")],
                ));
                return out;
            }
        };
        always(&mut out, "metricName", "");
        out
    })
}

/// A metric of the first version as one of the second.
pub fn second_spec(metric: &Value) -> Value {
    each(metric, |source, value| {
        let has = |name: &str| json::has(value, name);
        match source {
            "object" => {
                let by_value = !has("averageValue");
                let mut target = renamed(
                    value,
                    &[("targetValue", "value"), ("averageValue", "averageValue")],
                );
                target.insert("type".into(), value_type(by_value).into());
                if by_value {
                    always(&mut target, "value", "0");
                } else if target.get("value").is_some_and(is_zero) {
                    // The first version cannot leave it out.
                    target.remove("value");
                }
                let mut out = Map::new();
                out.insert("describedObject".into(), json::get(value, "target").clone());
                out.insert("target".into(), target.into());
                out.insert("metric".into(), identity(value, "selector"));
                out
            }
            "pods" => {
                let mut target = renamed(value, &[("targetAverageValue", "averageValue")]);
                always(&mut target, "averageValue", "0");
                target.insert("type".into(), "AverageValue".into());
                let mut out = Map::new();
                out.insert("target".into(), target.into());
                out.insert("metric".into(), identity(value, "selector"));
                out
            }
            "external" => {
                let mut target = renamed(
                    value,
                    &[
                        ("targetValue", "value"),
                        ("targetAverageValue", "averageValue"),
                    ],
                );
                target.insert("type".into(), value_type(has("targetValue")).into());
                let mut out = Map::new();
                out.insert("target".into(), target.into());
                out.insert("metric".into(), identity(value, "metricSelector"));
                out
            }
            _ => {
                let mut target = renamed(
                    value,
                    &[
                        ("targetAverageUtilization", "averageUtilization"),
                        ("targetAverageValue", "averageValue"),
                    ],
                );
                let kind = if has("targetAverageUtilization") {
                    "Utilization"
                } else {
                    "AverageValue"
                };
                target.insert("type".into(), kind.into());
                let mut out = renamed(value, &[("name", "name"), ("container", "container")]);
                out.insert("target".into(), target.into());
                out
            }
        }
    })
}

fn value_type(by_value: bool) -> &'static str {
    if by_value { "Value" } else { "AverageValue" }
}

fn is_zero(quantity: &Value) -> bool {
    Quantity::from_value(quantity).is_ok_and(|quantity| quantity.is_zero())
}

fn identity(value: &Value, selector: &str) -> Value {
    let mut out = renamed(value, &[("metricName", "name"), (selector, "selector")]);
    always(&mut out, "name", "");
    out.into()
}

/// The state of a metric of the second version as one of the first.
pub fn first_status(metric: &Value) -> Value {
    each(metric, |source, value| {
        let current = json::get(value, "current");
        let metric = json::get(value, "metric");
        let mut out = match source {
            "object" => {
                let mut out = renamed(
                    current,
                    &[("value", "currentValue"), ("averageValue", "averageValue")],
                );
                out.insert("target".into(), json::get(value, "describedObject").clone());
                out.extend(renamed(
                    metric,
                    &[("name", "metricName"), ("selector", "selector")],
                ));
                always(&mut out, "currentValue", "0");
                out
            }
            "pods" => {
                let mut out = renamed(current, &[("averageValue", "currentAverageValue")]);
                out.extend(renamed(
                    metric,
                    &[("name", "metricName"), ("selector", "selector")],
                ));
                always(&mut out, "currentAverageValue", "0");
                out
            }
            "external" => {
                let mut out = renamed(
                    current,
                    &[
                        ("value", "currentValue"),
                        ("averageValue", "currentAverageValue"),
                    ],
                );
                out.extend(renamed(
                    metric,
                    &[("name", "metricName"), ("selector", "metricSelector")],
                ));
                always(&mut out, "currentValue", "0");
                out
            }
            _ => {
                let mut out = renamed(
                    current,
                    &[
                        ("averageUtilization", "currentAverageUtilization"),
                        ("averageValue", "currentAverageValue"),
                    ],
                );
                out.extend(renamed(
                    value,
                    &[("name", "name"), ("container", "container")],
                ));
                always(&mut out, "currentAverageValue", "0");
                return out;
            }
        };
        always(&mut out, "metricName", "");
        out
    })
}

/// The state of a metric of the first version as one of the second.
pub fn second_status(metric: &Value) -> Value {
    each(metric, |source, value| {
        let names: &[(&str, &str)] = match source {
            "object" => &[("currentValue", "value"), ("averageValue", "averageValue")],
            "pods" => &[("currentAverageValue", "averageValue")],
            "external" => &[
                ("currentValue", "value"),
                ("currentAverageValue", "averageValue"),
            ],
            _ => &[
                ("currentAverageUtilization", "averageUtilization"),
                ("currentAverageValue", "averageValue"),
            ],
        };
        let mut current = renamed(value, names);
        match source {
            "object" | "external" => always(&mut current, "value", "0"),
            _ => always(&mut current, "averageValue", "0"),
        }
        let mut out = match source {
            "object" => {
                let target = json::get(value, "target").clone();
                let mut out = Map::from_iter([("describedObject".to_owned(), target)]);
                out.insert("metric".into(), identity(value, "selector"));
                out
            }
            "pods" => Map::from_iter([("metric".to_owned(), identity(value, "selector"))]),
            "external" => {
                Map::from_iter([("metric".to_owned(), identity(value, "metricSelector"))])
            }
            _ => renamed(value, &[("name", "name"), ("container", "container")]),
        };
        out.insert("current".into(), current.into());
        out
    })
}

/// A metric with each of its sources turned.
fn each(metric: &Value, turn: impl Fn(&str, &Value) -> Map<String, Value>) -> Value {
    let mut out = json!({ "type": json::text(metric, "type") });
    for source in SOURCES {
        if let Some(value) = json::some(metric, source) {
            out[source] = turn(source, value).into();
        }
    }
    out
}
