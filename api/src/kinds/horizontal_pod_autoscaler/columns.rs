//! How an autoscaler is printed.

use crate::kinds::row::{self, column};
use crate::object::Object;
use crate::resource::Column;
use crate::{json, print};
use serde_json::Value;

pub const COLUMNS: &[Column] = &[
    row::NAME,
    column("Reference", "string", "What is scaled."),
    column(
        "Targets",
        "string",
        "What is measured, beside what is wanted.",
    ),
    column("MinPods", "string", "How many pods there are at least."),
    column("MaxPods", "string", "How many pods there are at most."),
    column("Replicas", "string", "How many pods were last seen."),
    row::AGE,
];

const METRICS_SHOWN_MAX: usize = 2;

pub fn cells(object: &Object, now: i64) -> Vec<Value> {
    let target = object
        .get(&["spec", "scaleTargetRef"])
        .unwrap_or(&json::NULL);
    let [kind, name] = ["kind", "name"].map(|field| json::text(target, field));
    let least = match object.i64(&["spec", "minReplicas"]) {
        Some(least) => least.to_string(),
        None => "<unset>".to_owned(),
    };
    vec![
        object.name().into(),
        format!("{kind}/{name}").into(),
        metrics(object).into(),
        least.into(),
        object.i64(&["spec", "maxReplicas"]).unwrap_or(0).into(),
        object
            .i64(&["status", "currentReplicas"])
            .unwrap_or(0)
            .into(),
        print::age_of(object, now),
    ]
}

fn metrics(object: &Object) -> String {
    let specs = object.list(&["spec", "metrics"]);
    let states = object.list(&["status", "currentMetrics"]);
    if specs.is_empty() {
        return "<none>".to_owned();
    }
    let texts: Vec<String> = specs
        .iter()
        .enumerate()
        .take(METRICS_SHOWN_MAX)
        .map(|(index, spec)| metric(spec, states.get(index).unwrap_or(&json::NULL)))
        .collect();
    let text = texts.join(", ");
    match specs.len().saturating_sub(METRICS_SHOWN_MAX) {
        0 => text,
        more => format!("{text} + {more} more..."),
    }
}

fn metric(spec: &Value, state: &Value) -> String {
    let name = match json::text(spec, "type") {
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        "External" => "external",
        _ => return "<unknown type>".to_owned(),
    };
    let source = json::get(spec, name);
    let target = json::get(source, "target");
    let current = json::at(state, &[name, "current"]);
    let shown = |value: &Value| match value {
        Value::Null => "<unknown>".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let percent = |side: &Value, unset: &str| match json::int(side, "averageUtilization") {
        Some(percent) => format!("{percent}%"),
        None => unset.to_owned(),
    };
    let average = json::some(target, "averageValue");
    let now = shown(json::get(current, "averageValue"));
    match (name, average) {
        ("resource" | "containerResource", Some(average)) => {
            format!("{}: {now}/{}", json::text(source, "name"), shown(average))
        }
        ("resource" | "containerResource", None) => format!(
            "{}: {}/{}",
            json::text(source, "name"),
            percent(current, "<unknown>"),
            percent(target, "<auto>")
        ),
        ("pods", average) => format!("{now}/{}", shown(average.unwrap_or(&json::NULL))),
        (_, Some(average)) => format!("{now}/{} (avg)", shown(average)),
        (_, None) => {
            let now = shown(json::get(current, "value"));
            format!("{now}/{}", shown(json::get(target, "value")))
        }
    }
}
