//! What volumes hold, and what is said when something is missing.

use super::*;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

fn pod(volume: Value, more: Value) -> Pod {
    let mut pod = json!({
        "metadata": {
            "name": "web", "namespace": "default", "uid": "u",
            "labels": { "app": "web", "tier": "a\"b" },
            "annotations": { "bell": "\u{7}\u{1b}\u{200b}'" },
        },
        "spec": {
            "serviceAccountName": "robot",
            "containers": [{ "name": "c", "resources": { "limits": { "cpu": "1500m" } } }],
            "volumes": [volume],
        },
    });
    for (field, value) in more.as_object().unwrap() {
        pod["spec"][field] = value.clone();
    }
    serde_json::from_value(pod).unwrap()
}

fn contents() -> Contents {
    let map = json!({
        "data": { "a": "text", "b": "more" }, "binaryData": { "raw": "AAE=" },
    });
    let secret = json!({ "data": { "key": "c2VjcmV0" } });
    let mut contents = Contents::default();
    let maps = &mut contents.objects.config_maps;
    maps.insert("map".to_owned(), Some(serde_json::from_value(map).unwrap()));
    maps.insert("gone".to_owned(), None);
    let secrets = &mut contents.objects.secrets;
    secrets.insert(
        "secret".to_owned(),
        Some(serde_json::from_value(secret).unwrap()),
    );
    secrets.insert("gone".to_owned(), None);
    let spec = TokenSpec {
        audience: String::new(),
        seconds: 3607,
    };
    contents.tokens.insert(spec, "jwt".to_owned());
    contents
}

fn check_in(more: Value, volume: Value, expected: Expect) {
    let mut volume = volume;
    volume["name"] = "v".into();
    let pod = pod(volume, more);
    let volume = &state::spec(&pod).volumes.as_ref().unwrap()[0];
    let text = match files(&pod, volume, &contents()) {
        Err(error) => error,
        Ok(files) => {
            let lines = files.iter().map(|(path, file)| {
                let text = String::from_utf8_lossy(&file.bytes);
                let owner = file
                    .owner
                    .map_or_else(String::new, |owner| format!(" of {owner}"));
                format!("{path} {:o}{owner} {text:?}", file.mode)
            });
            lines.collect::<Vec<_>>().join("\n")
        }
    };
    expected.assert_eq(&text);
}

fn check(volume: Value, expected: Expect) {
    check_in(json!({}), volume, expected);
}

#[test]
fn config_maps_are_shown_whole_or_in_part() {
    check(
        json!({ "configMap": { "name": "map", "defaultMode": 256 } }),
        expect![[r#"
            a 400 "text"
            b 400 "more"
            raw 400 "\0\u{1}""#]],
    );
    let items = json!([{ "key": "a", "path": "x/y", "mode": 511 }, { "key": "raw", "path": "z" }]);
    check(
        json!({ "configMap": { "name": "map", "items": items } }),
        expect![[r#"
            x/y 777 "text"
            z 644 "\0\u{1}""#]],
    );
    let missing = json!([{ "key": "no", "path": "x" }]);
    check(
        json!({ "configMap": { "name": "map", "items": missing } }),
        expect!["configmap references non-existent config key: no"],
    );
    check(
        json!({ "configMap": { "name": "map", "items": missing, "optional": true } }),
        expect![""],
    );
    check(
        json!({ "configMap": { "name": "gone" } }),
        expect![[r#"configmap "gone" not found"#]],
    );
    check(
        json!({ "configMap": { "name": "gone", "optional": true } }),
        expect![""],
    );
}

#[test]
fn secrets_are_too() {
    check(
        json!({ "secret": { "secretName": "secret" } }),
        expect![[r#"key 644 "secret""#]],
    );
    check(
        json!({ "secret": { "secretName": "gone" } }),
        expect![[r#"secret "gone" not found"#]],
    );
    let missing = json!([{ "key": "no", "path": "x" }]);
    check(
        json!({ "secret": { "secretName": "secret", "items": missing } }),
        expect!["references non-existent secret key: no"],
    );
}

#[test]
fn a_pod_reads_about_itself() {
    let field =
        |path: &str, field: &str| json!({ "path": path, "fieldRef": { "fieldPath": field } });
    let cpu = json!({ "containerName": "c", "resource": "limits.cpu", "divisor": "1m" });
    let items = json!([
        field("labels", "metadata.labels"),
        field("own/name", "metadata.name"),
        field("tier", "metadata.labels['tier']"),
        field("odd", "metadata.annotations"),
        { "path": "cpu", "mode": 256, "resourceFieldRef": cpu },
    ]);
    check(
        json!({ "downwardAPI": { "items": items } }),
        expect![[r#"
            cpu 400 "1500"
            labels 644 "app=\"web\"\ntier=\"a\\\"b\""
            odd 644 "bell=\"\\a\\x1b\\u200b'\""
            own/name 644 "web"
            tier 644 "a\"b""#]],
    );
}

/// As admission makes it.
fn access() -> Value {
    json!({ "projected": { "defaultMode": 420, "sources": [
        { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
        { "configMap": { "name": "map", "items": [{ "key": "a", "path": "ca.crt" }] } },
        { "downwardAPI": { "items": [
            { "path": "namespace", "fieldRef": { "fieldPath": "metadata.namespace" } },
        ] } },
    ] } })
}

#[test]
fn the_access_to_the_api_is_one_volume() {
    check(
        access(),
        expect![[r#"
            ca.crt 644 "text"
            namespace 644 "default"
            token 644 "jwt""#]],
    );
    let user = json!({ "securityContext": { "runAsUser": 1000 } });
    check_in(
        user,
        access(),
        expect![[r#"
            ca.crt 644 "text"
            namespace 644 "default"
            token 600 of 1000 "jwt""#]],
    );
    let needs = needs(&pod(access(), json!({})));
    let token = TokenSpec {
        audience: String::new(),
        seconds: 3607,
    };
    assert_eq!(needs.tokens, BTreeSet::from([token]));
    assert_eq!(needs.config_maps, BTreeSet::from(["map".to_owned()]));
}

#[test]
fn all_that_is_missing_is_told_at_once() {
    check(
        json!({ "projected": { "sources": [
            { "secret": { "name": "gone" } },
            { "configMap": { "name": "gone" } },
            { "serviceAccountToken": { "audience": "vault", "path": "token" } },
        ] } }),
        expect![[
            r#"[secret "gone" not found, configmap "gone" not found, failed to fetch token]"#
        ]],
    );
}
