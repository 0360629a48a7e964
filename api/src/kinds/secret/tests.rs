//! Data, types and immutability of a Secret.

use crate::kinds::testing::{check_errors, check_row, defaulted, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn secret(kind: &str, data: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "a", "namespace": "b" },
        "type": kind, "data": data,
    })
}

#[test]
fn printed() {
    check_row(
        "secrets",
        secret("", json!({ "a": "eA==" })),
        0,
        expect![[r#"
        Name: a
        Type: Opaque
        Data: 1 (number)
        Age: <unknown>"#]],
    );
}

#[test]
fn string_data_overlays_data() {
    let mut value = secret("", json!({ "a": "eA==", "b": "eA==" }));
    value["stringData"] = json!({ "a": "hello" });
    let object = defaulted("secrets", value);
    expect![[r#"{"a":"aGVsbG8=","b":"eA=="}"#]]
        .assert_eq(&object.get(&["data"]).unwrap().to_string());
    assert!(object.get(&["stringData"]).is_none());
    assert_eq!(object.str(&["type"]), "Opaque");
}

#[test]
fn keys_by_type() {
    for (kind, data, expected) in [
        (
            "kubernetes.io/tls",
            json!({ "tls.crt": "" }),
            expect!["data[tls.key]: Required value"],
        ),
        (
            "kubernetes.io/basic-auth",
            json!({}),
            expect![[r#"
            data[username]: Required value
            data[password]: Required value"#]],
        ),
        (
            "kubernetes.io/ssh-auth",
            json!({}),
            expect!["data[ssh-privatekey]: Required value"],
        ),
        (
            "kubernetes.io/dockerconfigjson",
            json!({ ".dockerconfigjson": "eA==" }),
            expect![[
                r#"data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": expected value at line 1 column 1"#
            ]],
        ),
        (
            "kubernetes.io/service-account-token",
            json!({}),
            expect!["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
        ),
        (
            "Opaque",
            json!({ "a b": "" }),
            expect![[
                r#"data[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"#
            ]],
        ),
    ] {
        check_errors("secrets", secret(kind, data), expected);
    }
}

#[test]
fn the_type_stays() {
    let new = secret("example.com/b", json!({}));
    update_errors(
        "secrets",
        new,
        secret("", json!({})),
        Part::Main,
        expect![[r#"type: Invalid value: "example.com/b": field is immutable"#]],
    );
}
