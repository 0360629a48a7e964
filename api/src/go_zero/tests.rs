//! What Go writes of what nobody set.

use super::*;
use expect_test::expect;
use serde_json::json;

fn check(type_name: &str, value: Value) -> String {
    let mut object = Object::from_value(value).unwrap();
    complete(type_name, &mut object);
    object.into_value().to_string()
}

#[test]
fn required_fields_have_their_zero_value() {
    expect![[r#"{"metadata":{},"spec":{"drivers":null}}"#]]
        .assert_eq(&check("io.k8s.api.storage.v1.CSINode", json!({})));
    let driver = json!({ "spec": { "drivers": [{ "topologyKeys": [] }] } });
    expect![[r#"{"metadata":{},"spec":{"drivers":[{"name":"","nodeID":""}]}}"#]]
        .assert_eq(&check("io.k8s.api.storage.v1.CSINode", driver));
}

#[test]
fn structures_that_are_no_pointers_are_there() {
    let template = json!({ "template": { "spec": { "containers": [] } } });
    expect![[r#"{"metadata":{},"template":{"metadata":{},"spec":{"containers":null}}}"#]]
        .assert_eq(&check("io.k8s.api.core.v1.PodTemplate", template));
}

#[test]
fn times_that_are_no_pointers_are_null() {
    let pod = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
    let shown = check("io.k8s.api.core.v1.Pod", pod);
    let condition =
        r#"{"lastProbeTime":null,"lastTransitionTime":null,"status":"True","type":"Ready"}"#;
    assert!(shown.contains(condition), "{shown}");
}

#[test]
fn empty_lists_that_nobody_requires_are_gone() {
    let class = json!({ "provisioner": "a", "mountOptions": [], "parameters": {} });
    expect![[r#"{"metadata":{},"provisioner":"a"}"#]]
        .assert_eq(&check("io.k8s.api.storage.v1.StorageClass", class));
}
