//! One event in the views of both groups.

use super::convert;
use crate::catalogue;
use crate::kinds::testing::{check_errors, check_row, defaulted, object};
use expect_test::expect;
use serde_json::{Value, json};

fn event() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": { "name": "web.1", "namespace": "shop" },
        "involvedObject": { "kind": "Pod", "name": "web", "namespace": "shop" },
        "reason": "Started", "message": "Started container web\n", "type": "Normal", "count": 3,
        "firstTimestamp": "1970-01-01T00:00:00Z", "lastTimestamp": "1970-01-01T00:01:00Z",
        "source": { "component": "kubelet", "host": "edge-1" },
    })
}

#[test]
fn printed() {
    check_row(
        "events",
        event(),
        90,
        expect![[r#"
        Last Seen: 30s
        Type: Normal
        Reason: Started
        Object: pod/web
        Subobject: 
        Source: kubelet, edge-1
        Message: Started container web
        First Seen: 90s
        Count: 3 (number)
        Name: web.1"#]],
    );
}

#[test]
fn both_views_show_the_same_event() {
    let stored = defaulted("events", event());
    let mut seen = stored.clone();
    convert::from_stored(&mut seen);
    expect![[r#"{"apiVersion":"events.k8s.io/v1","deprecatedCount":3,"deprecatedFirstTimestamp":"1970-01-01T00:00:00Z","deprecatedLastTimestamp":"1970-01-01T00:01:00Z","deprecatedSource":{"component":"kubelet","host":"edge-1"},"eventTime":null,"kind":"Event","metadata":{"name":"web.1","namespace":"shop"},"note":"Started container web\n","reason":"Started","regarding":{"kind":"Pod","name":"web","namespace":"shop"},"type":"Normal"}"#]].assert_eq(&seen.to_value().to_string());
    let row = catalogue::find("events.k8s.io", "v1", "events").unwrap();
    assert_eq!(row.rules.field(&seen, "regarding.name"), "web");
    assert_eq!(row.rules.cells(&seen, 90), row.rules.cells(&stored, 90));
    convert::to_stored(&mut seen);
    assert_eq!(seen, stored);
}

#[test]
fn an_event_lives_where_its_object_lives() {
    let mut bad = event();
    bad["involvedObject"]["namespace"] = "other".into();
    check_errors(
        "events",
        bad,
        expect![[
            r#"involvedObject.namespace: Invalid value: "other": does not match event.namespace"#
        ]],
    );
}

#[test]
fn the_newer_view_is_strict() {
    let row = catalogue::find("events.k8s.io", "v1", "events").unwrap();
    let mut seen = object(event());
    convert::from_stored(&mut seen);
    let errors = row.rules.validate_create(&seen);
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    expect![[r#"
        eventTime: Required value
        firstTimestamp: Invalid value: "": needs to be unset
        lastTimestamp: Invalid value: "": needs to be unset
        count: Invalid value: "": needs to be unset
        source: Invalid value: "": needs to be unset"#]]
    .assert_eq(&lines.join("\n"));
}
