//! The bodies that are sent, as text.

use expect_test::{Expect, expect};
use k8s_openapi::api::apps::v1::ReplicaSet;

use super::*;

fn replica_set(yaml: Value) -> ReplicaSet {
    serde_json::from_value(yaml).unwrap()
}

fn check(body: Option<Value>, expected: Expect) {
    expected.assert_eq(&body.map_or("nothing".to_owned(), |body| format!("{body:#}")));
}

#[test]
fn what_vanished_is_nulled_and_what_stayed_is_left_out() {
    let old = replica_set(json!({
        "metadata": {"name": "web", "uid": "u1", "resourceVersion": "7"},
        "status": {"replicas": 3, "readyReplicas": 2, "observedGeneration": 1},
    }));
    let new = replica_set(json!({
        "metadata": {"name": "web", "uid": "u1", "resourceVersion": "7"},
        "status": {"replicas": 3, "availableReplicas": 1, "observedGeneration": 2},
    }));
    check(
        status_body(&old, &new, Precondition::Unchanged).unwrap(),
        expect![[r#"
            {
              "metadata": {
                "resourceVersion": "7",
                "uid": "u1"
              },
              "status": {
                "availableReplicas": 1,
                "observedGeneration": 2,
                "readyReplicas": null
              }
            }"#]],
    );
    check(
        status_body(&old, &old, Precondition::Unchanged).unwrap(),
        expect!["nothing"],
    );
}

#[test]
fn an_object_patch_never_touches_status() {
    let old = replica_set(json!({
        "metadata": {"name": "web", "uid": "u1", "resourceVersion": "7", "annotations": {"a": "1"}},
        "spec": {"replicas": 3, "selector": {}},
        "status": {"replicas": 3},
    }));
    let mut new = old.clone();
    new.spec.as_mut().unwrap().replicas = Some(5);
    new.metadata.annotations = None;
    new.status.as_mut().unwrap().replicas = 9;
    check(
        object_body(&old, &new, Precondition::SameObject).unwrap(),
        expect![[r#"
            {
              "metadata": {
                "annotations": null,
                "uid": "u1"
              },
              "spec": {
                "replicas": 5
              }
            }"#]],
    );
}
