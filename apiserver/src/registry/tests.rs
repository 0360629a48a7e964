//! The revision gets its place in the stored bytes.

use super::*;
use serde_json::json;

#[test]
fn the_revision_has_its_place_wherever_metadata_is() {
    let object = Object::from_value(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "a", "resourceVersion": "7", "labels": { "b": "c" } },
        "data": { "metadata": "x" },
    }))
    .unwrap();
    let (mut bytes, place) = encode(&object);
    bytes.splice(place..place, *b"42");
    let read: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(read["metadata"]["resourceVersion"], "42");
    assert_eq!(read["metadata"]["labels"]["b"], "c");
    assert_eq!(read["data"]["metadata"], "x");
}

#[test]
fn stored_bytes_show_their_traits_without_a_parse() {
    let resource = coracle_api::catalogue::by_kind("", "v1", "Pod").unwrap();
    let object = Object::from_value(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "a", "namespace": "n", "labels": { "b": "c" } },
        "spec": { "nodeName": "x" }, "status": { "phase": "Running" },
    }))
    .unwrap();
    let value = Bytes::from(encode(&object).0);
    assert!(value.starts_with(b"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"res"));
    let quick = glance::Traits::of(resource, &value, false).unwrap();
    assert_eq!((quick.name.as_str(), quick.namespace.as_str()), ("a", "n"));
    assert_eq!(quick.labels["b"], "c");
    assert!(quick.fields.is_empty());
    let whole = glance::Traits::of(resource, &value, true).unwrap();
    assert_eq!(whole.field(resource, "spec.nodeName"), "x");
    assert_eq!(whole.field(resource, "status.phase"), "Running");
    let metadata = glance::metadata_bytes(resource, &value).unwrap();
    let read: Value = serde_json::from_slice(metadata).unwrap();
    assert_eq!(read["name"], "a");
    // Bytes in another order are read all the same.
    let other = Bytes::from(object.to_value().to_string());
    assert!(glance::after_type(resource, &other).is_none());
    let slow = glance::Traits::of(resource, &other, false).unwrap();
    assert_eq!(slow.labels, quick.labels);
}

#[test]
fn what_selectors_ask_for_is_found_without_the_rest() {
    let objects = [
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "a", "namespace": "n", "labels": { "b": "\"c\"" },
                "annotations": { "d": "e" }, "managedFields": [{ "manager": "m" }] },
            "spec": {
                "nodeName": "x", "restartPolicy": "Never", "schedulerName": "s", "hostNetwork": true,
                "serviceAccountName": "default", "containers": [{ "name": "spec.nodeName" }],
            },
            "status": {
                "phase": "Running", "podIP": "10.0.0.1", "podIPs": [{ "ip": "10.0.0.2" }],
                "nominatedNodeName": "y",
            },
        }),
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "bare" } }),
        json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "a" },
            "spec": { "unschedulable": true } }),
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "a" },
            "status": { "phase": "Terminating" } }),
        json!({ "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": { "name": "a", "namespace": "n" } }),
        json!({ "apiVersion": "v1", "kind": "Event", "metadata": { "name": "a", "namespace": "n" },
            "involvedObject": { "kind": "Pod", "name": "p", "uid": "u" }, "reason": "r",
            "source": { "component": "c" }, "type": "Normal" }),
        json!({ "apiVersion": "v1", "kind": "Event", "metadata": { "name": "a", "namespace": "n" },
            "involvedObject": {}, "reportingComponent": "c" }),
        json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "a", "namespace": "n" },
            "status": { "succeeded": 3 } }),
        json!({ "apiVersion": "v1", "kind": "ReplicationController",
            "metadata": { "name": "a", "namespace": "n" }, "status": { "replicas": 2 } }),
    ];
    for object in objects {
        let object = Object::from_value(object).unwrap();
        let (group, version) = match object.str(&["apiVersion"]).split_once('/') {
            Some(both) => both,
            None => ("", object.str(&["apiVersion"])),
        };
        let kind = object.str(&["kind"]);
        let resource = coracle_api::catalogue::by_kind(group, version, kind).unwrap();
        assert!(!resource.selectable_fields.is_empty(), "{kind}");
        let value = Bytes::from(encode(&object).0);
        let quick = glance::Traits::of(resource, &value, true).unwrap();
        let whole = glance::Traits::of_object(resource, &decode(resource, &value).unwrap());
        assert_eq!(quick, whole, "{kind}");
    }
    let resource = coracle_api::catalogue::by_kind("", "v1", "Pod").unwrap();
    for value in ["", "[]", "{\"spec\": {\"nodeName\": }}"] {
        let none = glance::Traits::of(resource, &Bytes::from_static(value.as_bytes()), true);
        assert_eq!(none, None, "{value}");
    }
}
