//! Metadata that is refused, at creation and at an update.

use super::*;
use crate::catalogue;
use expect_test::{Expect, expect};
use serde_json::json;

fn object(metadata: Value) -> Object {
    Object::from_value(json!({ "metadata": metadata })).unwrap()
}

fn lines(errors: &ErrorList) -> String {
    errors
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

fn create(plural: &str, metadata: Value, expected: Expect) {
    let resource = catalogue::all()
        .iter()
        .find(|row| row.plural == plural)
        .unwrap();
    expected.assert_eq(&lines(&validate_metadata(&object(metadata), resource)));
}

fn update(new: Value, old: Value, expected: Expect) {
    expected.assert_eq(&lines(&validate_metadata_update(
        &object(new),
        &object(old),
    )));
}

#[test]
fn names_and_namespaces() {
    create(
        "pods",
        json!({}),
        expect![[r#"
        metadata.name: Required value: name or generateName is required
        metadata.namespace: Required value"#]],
    );
    create(
        "pods",
        json!({ "generateName": "a-", "name": "a-b", "namespace": "a" }),
        expect![],
    );
    create(
        "pods",
        json!({ "generateName": "A-", "name": "A-b", "namespace": "a.b" }),
        expect![[r#"
            metadata.generateName: Invalid value: "A-": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            metadata.name: Invalid value: "A-b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            metadata.namespace: Invalid value: "a.b": must not contain dots"#]],
    );
    create(
        "nodes",
        json!({ "name": "a", "namespace": "b" }),
        expect!["metadata.namespace: Forbidden: not allowed on this type"],
    );
    create(
        "services",
        json!({ "name": "a.b", "namespace": "c" }),
        expect![[r#"metadata.name: Invalid value: "a.b": must not contain dots"#]],
    );
    create(
        "roles",
        json!({ "name": "system:a", "namespace": "c" }),
        expect![],
    );
}

#[test]
fn labels_annotations_owners_and_finalizers() {
    let metadata = json!({
        "name": "a", "namespace": "b",
        "labels": { "a b": "x", "ok": "-" },
        "annotations": { "UPPER.com/x": "any thing", "": "x" },
        "ownerReferences": [
            { "kind": "ReplicaSet", "name": "a", "controller": true },
            { "apiVersion": "v1", "kind": "Event", "name": "b", "uid": "u", "controller": true },
        ],
        "finalizers": ["orphan", "foregroundDeletion", "a b"],
    });
    create(
        "pods",
        metadata,
        expect![[r#"
            metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            metadata.labels: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
            metadata.annotations: Invalid value: "": name part must be non-empty
            metadata.annotations: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty
            metadata.ownerReferences.uid: Invalid value: "": must not be empty
            metadata.ownerReferences: Invalid value: {"apiVersion":"v1","controller":true,"kind":"Event","name":"b","uid":"u"}: /v1, Kind=Event is disallowed from being an owner
            metadata.ownerReferences: Invalid value: [{"controller":true,"kind":"ReplicaSet","name":"a"},{"apiVersion":"v1","controller":true,"kind":"Event","name":"b","uid":"u"}]: Only one reference can have Controller set to true. Found "true" in references for ReplicaSet/a and Event/b
            metadata.finalizers: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            metadata.finalizers: Invalid value: ["orphan","foregroundDeletion","a b"]: finalizer orphan and foregroundDeletion cannot be both set
            metadata.finalizers[2]: Invalid value: "a b": name is neither a standard finalizer name nor is it fully qualified"#]],
    );
    let long = "x".repeat(300_000);
    let metadata = json!({ "name": "a", "namespace": "b", "annotations": { "a": long } });
    create(
        "pods",
        metadata,
        expect!["metadata.annotations: Too long: may not be more than 262144 bytes"],
    );
}

#[test]
fn what_an_update_may_not_change() {
    let old = json!({
        "name": "a", "uid": "1", "generation": 3, "deletionTimestamp": "1970-01-01T00:00:00Z",
        "finalizers": ["example.com/a"],
    });
    update(old.clone(), old.clone(), expect![]);
    let new = json!({
        "name": "b", "uid": "2", "generation": 2,
        "finalizers": ["example.com/a", "example.com/b"],
    });
    update(
        new,
        old,
        expect![[r#"
        metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/b"}
        metadata.generation: Invalid value: 2: must not be decremented
        metadata.name: Invalid value: "b": field is immutable
        metadata.uid: Invalid value: "2": field is immutable
        metadata.deletionTimestamp: Invalid value: null: field is immutable"#]],
    );
}
