//! The data of a ControllerRevision is there and stays.

use crate::kinds::testing::{check_errors, check_row, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn revision() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": { "name": "db-1", "namespace": "shop", "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "1",
            "controller": true,
        }] },
        "data": { "spec": {} }, "revision": 2,
    })
}

#[test]
fn printed() {
    check_row(
        "controllerrevisions",
        revision(),
        0,
        expect![[r#"
        Name: db-1
        Controller: statefulset.apps/db
        Revision: 2 (number)
        Age: <unknown>"#]],
    );
}

#[test]
fn data_is_there_and_stays() {
    let mut bad = revision();
    bad["data"] = Value::Null;
    bad["revision"] = (-1).into();
    check_errors(
        "controllerrevisions",
        bad,
        expect![[r#"
            revision: Invalid value: -1: must be greater than or equal to 0
            data: Required value: data is mandatory"#]],
    );
    let mut new = revision();
    new["data"]["spec"]["a"] = 1.into();
    update_errors(
        "controllerrevisions",
        new,
        revision(),
        Part::Main,
        expect![[r#"data: Invalid value: {"spec":{"a":1}}: field is immutable"#]],
    );
}
