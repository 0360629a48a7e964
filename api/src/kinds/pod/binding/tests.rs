//! Which pods can be bound, and what a bound pod looks like.

use super::*;
use crate::kinds::testing::object;
use expect_test::expect;

fn binding() -> Object {
    object(json!({
        "metadata": { "name": "web", "labels": { "zone": "a" }, "annotations": { "by": "me" } },
        "target": { "kind": "Node", "name": "edge-1" },
    }))
}

fn pod() -> Object {
    object(json!({
        "metadata": { "name": "web", "labels": { "app": "web" } },
        "spec": {},
        "status": { "nominatedNodeName": "edge-2", "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable" },
        ] },
    }))
}

#[test]
fn a_bound_pod_is_scheduled() {
    let mut pod = pod();
    bind(&mut pod, &binding(), "1970-01-01T00:00:09Z").unwrap();
    expect![[r#"{"metadata":{"annotations":{"by":"me"},"labels":{"app":"web","zone":"a"},"name":"web"},"spec":{"nodeName":"edge-1"},"status":{"conditions":[{"lastProbeTime":null,"lastTransitionTime":"1970-01-01T00:00:09Z","status":"True","type":"PodScheduled"}]}}"#]].assert_eq(&pod.to_value().to_string());
    let again = bind(&mut pod, &binding(), "1970-01-01T00:00:10Z").unwrap_err();
    assert_eq!(
        again.to_string(),
        "pod web is already assigned to node \"edge-1\""
    );
}

#[test]
fn pods_that_cannot_be_bound() {
    let mut gated = pod();
    gated.set(&["spec", "schedulingGates"], json!([{ "name": "a" }]));
    let mut leaving = pod();
    leaving.set(
        &["metadata", "deletionTimestamp"],
        "1970-01-01T00:00:09Z".into(),
    );
    for (mut pod, expected) in [
        (gated, "pod web has non-empty .spec.schedulingGates"),
        (
            leaving,
            "pod web is being deleted, cannot be assigned to a host",
        ),
    ] {
        assert_eq!(
            bind(&mut pod, &binding(), "").unwrap_err().to_string(),
            expected
        );
    }
    let bad = object(json!({ "target": { "kind": "Pod" } }));
    let lines: Vec<String> = validate(&bad).iter().map(ToString::to_string).collect();
    expect![[r#"
        target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"
        target.name: Required value"#]]
    .assert_eq(&lines.join("\n"));
}
