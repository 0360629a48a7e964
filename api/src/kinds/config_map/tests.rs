//! Keys, size and immutability of a ConfigMap.

use crate::kinds::testing::{check_errors, check_row, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn map(data: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "a", "namespace": "b", "creationTimestamp": "1970-01-01T00:00:00Z" },
        "data": data, "binaryData": { "b": "AAAA" },
    })
}

#[test]
fn printed() {
    check_row(
        "configmaps",
        map(json!({ "a": "x" })),
        60,
        expect![[r#"
        Name: a
        Data: 2 (number)
        Age: 60s"#]],
    );
}

#[test]
fn keys_and_size() {
    check_errors(
        "configmaps",
        map(json!({ "a/b": "x", "b": "x" })),
        expect![[r#"
            data[a/b]: Invalid value: "a/b": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')
            data[b]: Invalid value: "b": duplicate of key present in binaryData"#]],
    );
    let long = "x".repeat(1024 * 1024);
    check_errors(
        "configmaps",
        map(json!({ "a": long })),
        expect!["[]: Too long: may not be more than 1048576 bytes"],
    );
}

#[test]
fn immutable_data_stays() {
    let mut old = map(json!({ "a": "x" }));
    old["immutable"] = true.into();
    update_errors(
        "configmaps",
        map(json!({ "a": "y" })),
        old,
        Part::Main,
        expect![[r#"
            immutable: Forbidden: field is immutable when `immutable` is set
            data: Forbidden: field is immutable when `immutable` is set"#]],
    );
}
