//! Defaults and validation of a ReplicationController.

use crate::kinds::testing::{check_errors, check_row, defaulted};
use expect_test::expect;
use serde_json::{Value, json};

fn web() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ReplicationController",
        "metadata": { "name": "web", "namespace": "shop" },
        "spec": {
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
    })
}

#[test]
fn selector_and_labels_come_from_the_template() {
    let object = defaulted("replicationcontrollers", web());
    assert_eq!(object.str(&["spec", "selector", "app"]), "web");
    assert_eq!(object.label("app"), Some("web"));
    check_row(
        "replicationcontrollers",
        web(),
        0,
        expect![[r#"
        Name: web
        Desired: 1 (number)
        Current: 0 (number)
        Ready: 0 (number)
        Age: <unknown>
        Containers: web
        Images: web:1
        Selector: app=web"#]],
    );
}

#[test]
fn the_template_is_needed() {
    let mut bad = web();
    bad["spec"] = json!({ "selector": { "app": "web" }, "replicas": -2 });
    check_errors(
        "replicationcontrollers",
        bad,
        expect![[r#"
        spec.replicas: Invalid value: -2: must be greater than or equal to 0
        spec.template: Required value"#]],
    );
}
