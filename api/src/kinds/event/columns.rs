//! What `kubectl get events` prints.

use crate::kinds::row::{column, wide};
use crate::object::Object;
use crate::print;
use crate::resource::Column;
use serde_json::Value;

pub const COLUMNS: &[Column] = &[
    column("Last Seen", "string", "How long ago it last happened."),
    column("Type", "string", "Normal or Warning."),
    column("Reason", "string", "Why it happened, in one word."),
    column("Object", "string", "What it is about."),
    wide(
        "Subobject",
        "string",
        "The part of the object that it is about.",
    ),
    wide("Source", "string", "The component that reports it."),
    column("Message", "string", "What happened, for people."),
    wide("First Seen", "string", "How long ago it first happened."),
    wide("Count", "string", "How often it happened."),
    Column {
        format: "name",
        ..wide("Name", "string", "The name of the event.")
    },
];

pub fn cells(event: &Object, now: i64) -> Vec<Value> {
    let first = match event.str(&["firstTimestamp"]) {
        "" => event.str(&["eventTime"]),
        time => time,
    };
    let last = match event.str(&["lastTimestamp"]) {
        "" => first,
        time => time,
    };
    let count = event.i64(&["count"]).unwrap_or(0).max(1);
    let (last, count) = match event.get(&["series"]) {
        Some(series) if !series.is_null() => (
            event.str(&["series", "lastObservedTime"]),
            event.i64(&["series", "count"]).unwrap_or(0),
        ),
        _ => (last, count),
    };
    vec![
        print::age(last, now).into(),
        event.str(&["type"]).into(),
        event.str(&["reason"]).into(),
        target(event).into(),
        event.str(&["involvedObject", "fieldPath"]).into(),
        source(event).into(),
        event.str(&["message"]).trim().into(),
        print::age(first, now).into(),
        count.into(),
        event.name().into(),
    ]
}

fn target(event: &Object) -> String {
    let kind = event.str(&["involvedObject", "kind"]).to_lowercase();
    match event.str(&["involvedObject", "name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(event: &Object) -> String {
    let either = |old: &[&str], new: &str| match event.str(old) {
        "" => event.str(&[new]).to_owned(),
        text => text.to_owned(),
    };
    let component = either(&["source", "component"], "reportingComponent");
    let instance = either(&["source", "host"], "reportingInstance");
    if instance.is_empty() {
        component
    } else {
        format!("{component}, {instance}")
    }
}
