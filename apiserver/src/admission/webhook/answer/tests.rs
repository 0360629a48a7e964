//! Bodies, and what they mean as answers.

use super::*;
use expect_test::{Expect, expect};
use serde_json::json;

const UID: &str = "u-1";

fn of(api_version: &str, response: Value) -> Value {
    json!({ "kind": "AdmissionReview", "apiVersion": api_version, "response": response })
}

fn v1(response: Value) -> Value {
    of("admission.k8s.io/v1", response)
}

fn told(body: &Value, version: Version, may_patch: bool) -> String {
    match read(body.to_string().as_bytes(), version, UID, may_patch) {
        Ok(answer) => format!(
            "{} patch={} {:?}",
            if answer.is_allowed { "yes" } else { "no" },
            String::from_utf8(answer.patch).unwrap(),
            answer.warnings,
        ),
        Err(Fault::Undecodable(why)) => format!("undecodable: {why}"),
        Err(Fault::Invalid(why)) => format!("invalid: {why}"),
    }
}

fn check(body: Value, may_patch: bool, expected: Expect) {
    expected.assert_eq(&told(&body, Version::V1, may_patch));
}

#[test]
fn a_response_must_be_to_this_review() {
    check(
        v1(json!({ "uid": UID, "allowed": true, "warnings": ["w"] })),
        false,
        expect![[r#"yes patch= ["w"]"#]],
    );
    check(
        v1(json!(null)),
        false,
        expect!["invalid: webhook response was absent"],
    );
    check(
        v1(json!({ "uid": "u-2", "allowed": true })),
        false,
        expect![[r#"invalid: expected response.uid="u-1", got "u-2""#]],
    );
    check(
        json!({ "response": { "uid": UID } }),
        false,
        expect![
            "invalid: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="
        ],
    );
    check(
        of("admission.k8s.io/v1beta1", json!({ "uid": UID })),
        false,
        expect![
            "undecodable: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"
        ],
    );
    check(
        json!({ "kind": "Pod", "apiVersion": "v1" }),
        false,
        expect![[r#"undecodable: no kind "Pod" is registered for version "v1""#]],
    );
    let broken = read(b"<html>", Version::V1, UID, false).unwrap_err();
    assert!(matches!(broken, Fault::Undecodable(why) if why.contains("json parse error")));
}

#[test]
fn a_patch_comes_with_its_type_and_from_those_who_may() {
    let patch = STANDARD.encode("[]");
    let with = |patch: Value, kind: Value| {
        v1(json!({ "uid": UID, "allowed": true, "patch": patch, "patchType": kind }))
    };
    let whole = || with(json!(patch), json!("JSONPatch"));
    check(whole(), true, expect!["yes patch=[] []"]);
    check(
        whole(),
        false,
        expect!["invalid: validating webhook may not return response.patch"],
    );
    check(
        with(json!(null), json!("JSONPatch")),
        false,
        expect!["invalid: validating webhook may not return response.patchType"],
    );
    check(
        with(json!(patch), json!(null)),
        true,
        expect!["invalid: webhook returned response.patch but not response.patchType"],
    );
    check(
        with(json!(null), json!("JSONPatch")),
        true,
        expect!["invalid: webhook returned response.patchType but not response.patch"],
    );
    check(
        with(json!(patch), json!("")),
        true,
        expect![[r#"invalid: webhook returned invalid response.patchType of """#]],
    );
    let broken = told(&with(json!("%"), json!("JSONPatch")), Version::V1, true);
    assert!(
        broken.starts_with("undecodable: illegal base64 data"),
        "{broken}"
    );
}

#[test]
fn the_older_version_says_less() {
    let beta = of(
        "admission.k8s.io/v1beta1",
        json!({ "allowed": true, "patch": STANDARD.encode("[]") }),
    );
    expect!["yes patch=[] []"].assert_eq(&told(&beta, Version::V1Beta1, true));
    expect!["yes patch= []"].assert_eq(&told(&beta, Version::V1Beta1, false));
}

#[test]
fn a_refusal_is_always_a_failure() {
    let told = |status: Value| {
        let status = denied("a.b.c", Some(&status).filter(|status| !status.is_null()));
        format!("{} {}: {}", status.code, status.reason, status.message)
    };
    expect![[r#"400 : admission webhook "a.b.c" denied the request without explanation"#]]
        .assert_eq(&told(json!(null)));
    expect![[r#"400 : admission webhook "a.b.c" denied the request: no"#]].assert_eq(&told(
        json!({ "status": "Success", "code": 200, "message": "no" }),
    ));
    expect![[r#"409 Taken already: admission webhook "a.b.c" denied the request: Taken already"#]]
        .assert_eq(&told(json!({ "reason": "Taken already", "code": 409 })));
}
