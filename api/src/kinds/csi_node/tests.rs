//! Validation, updates and cells of a CSINode.

use crate::kinds::testing::{check_errors, check_row, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn node() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
        "metadata": { "name": "n", "creationTimestamp": "1970-01-01T00:00:00Z" },
        "spec": { "drivers": [{
            "name": "d.example.com", "nodeID": "n", "topologyKeys": ["a/b"],
            "allocatable": { "count": 3 },
        }] },
    })
}

#[test]
fn printed() {
    check_row(
        "csinodes",
        node(),
        60,
        expect![[r#"
        Name: n
        Drivers: 1 (number)
        Age: 60s"#]],
    );
}

#[test]
fn wrong_in_many_ways() {
    let mut bad = node();
    bad["spec"]["drivers"] = json!([
        { "name": "a", "nodeID": "", "allocatable": { "count": -1 } },
        { "name": "a", "nodeID": "x", "topologyKeys": ["k", "k", ""] },
    ]);
    check_errors(
        "csinodes",
        bad,
        expect![[r#"
        spec.drivers[0].nodeID: Required value
        spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0
        spec.drivers[1].name: Duplicate value: "a"
        spec.drivers[1]: Duplicate value: "k"
        spec.drivers[1]: Required value
        spec.drivers[1]: Invalid value: "": name part must be non-empty
        spec.drivers[1]: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#]],
    );
}

#[test]
fn a_driver_changes_in_its_count_alone() {
    let mut new = node();
    new["spec"]["drivers"][0]["allocatable"]["count"] = 4.into();
    update_errors("csinodes", new.clone(), node(), Part::Main, expect![]);
    new["spec"]["drivers"][0]["nodeID"] = "other".into();
    update_errors(
        "csinodes",
        new,
        node(),
        Part::Main,
        expect![[
            r#"spec.drivers: Invalid value: {"Name":"d.example.com","NodeID":"other","TopologyKeys":["a/b"],"Allocatable":null}: field is immutable"#
        ]],
    );
}
