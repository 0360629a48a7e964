//! Printed cells and validation of a ReplicaSet.

use crate::kinds::testing::{check_errors, check_row, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn web() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": "web", "namespace": "shop", "creationTimestamp": "1970-01-01T00:00:00Z",
        },
        "spec": {
            "selector": { "matchExpressions": [
                { "key": "app", "operator": "In", "values": ["web", "api"] },
            ] },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
    })
}

#[test]
fn printed() {
    check_row(
        "replicasets",
        web(),
        7200,
        expect![[r#"
        Name: web
        Desired: 1 (number)
        Current: 0 (number)
        Ready: 0 (number)
        Age: 120m
        Containers: web
        Images: web:1
        Selector: app in (api,web)"#]],
    );
}

#[test]
fn selectors_are_checked() {
    let mut bad = web();
    bad["spec"]["selector"]["matchExpressions"] = json!([
        { "key": "app", "operator": "In" },
        { "key": "-a", "operator": "Exists", "values": ["x"] },
        { "key": "a", "operator": "Like" },
    ]);
    check_errors(
        "replicasets",
        bad,
        expect![[r#"
        spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'
        spec.selector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'
        spec.selector.matchExpressions[1].key: Invalid value: "-a": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        spec.selector.matchExpressions[2].operator: Invalid value: "Like": not a valid selector operator
        spec.selector: Invalid value: {"matchExpressions":[{"key":"app","operator":"In"},{"key":"-a","operator":"Exists","values":["x"]},{"key":"a","operator":"Like"}]}: invalid label selector"#]],
    );
}

#[test]
fn the_status_counts_pods() {
    let mut new = web();
    new["status"] = json!({ "replicas": -1, "availableReplicas": 1 });
    update_errors(
        "replicasets",
        new,
        web(),
        Part::Status,
        expect![[r#"
        status.replicas: Invalid value: -1: must be greater than or equal to 0
        status.fullyLabeledReplicas: Invalid value: 0: cannot be greater than status.replicas
        status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas
        status.availableReplicas: Invalid value: 1: cannot be greater than status.replicas
        status.availableReplicas: Invalid value: 1: cannot be greater than readyReplicas"#]],
    );
}
