//! A Scale shows and writes the replicas of its object.

use super::*;
use crate::catalogue;
use expect_test::expect;

#[test]
fn read_and_written_through_the_object() {
    let deployments = catalogue::find("apps", "v1", "deployments").unwrap();
    let mut object = Object::from_value(json!({
        "metadata": { "name": "web", "namespace": "shop", "uid": "1", "resourceVersion": "7",
                      "labels": { "a": "b" } },
        "spec": { "replicas": 3, "selector": {
            "matchLabels": { "b": "2", "a": "1" },
            "matchExpressions": [
                { "key": "c", "operator": "NotIn", "values": ["y", "x"] },
                { "key": "d", "operator": "Exists" },
                { "key": "e", "operator": "DoesNotExist" },
            ],
        } },
        "status": { "replicas": 2 },
    }))
    .unwrap();
    let mut scale = read(deployments, &object);
    expect![[r#"{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web","namespace":"shop","resourceVersion":"7","uid":"1"},"spec":{"replicas":3},"status":{"replicas":2,"selector":"a=1,b=2,c notin (x,y),d,!e"}}"#]].assert_eq(&scale.to_value().to_string());
    scale.set(&["spec", "replicas"], 0.into());
    assert!(validate(&scale).is_empty());
    write(deployments, &mut object, &scale);
    assert_eq!(object.i64(&["spec", "replicas"]), Some(0));
    scale.set(&["spec", "replicas"], (-1).into());
    expect!["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]
        .assert_eq(&validate(&scale)[0].to_string());
}

#[test]
fn the_selector_of_a_replication_controller_is_a_map() {
    assert_eq!(selector_text(&json!({ "b": "2", "a": "1" })), "a=1,b=2");
    assert_eq!(selector_text(&Value::Null), "");
}
