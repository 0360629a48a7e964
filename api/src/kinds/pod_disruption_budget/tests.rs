//! Validation, status and printed cells of a PodDisruptionBudget.

use crate::kinds::testing::{check_errors, check_row, defaulted, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

const PLURAL: &str = "poddisruptionbudgets";

fn web(spec: Value) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": "web", "creationTimestamp": "1970-01-01T00:00:00Z" },
        "spec": spec,
    })
}

#[test]
fn bounds_selector_and_policy() {
    let both = json!({ "minAvailable": 1, "maxUnavailable": "120%" });
    check_errors(
        PLURAL,
        web(both),
        expect![[r#"
        spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":"120%","UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set
        spec.maxUnavailable: Invalid value: "120%": must not be greater than 100%"#]],
    );
    let bad = json!({
        "minAvailable": -1, "selector": { "matchLabels": { "B_!": "c" } },
        "unhealthyPodEvictionPolicy": "Never",
    });
    check_errors(
        PLURAL,
        web(bad),
        expect![[r#"
        spec.minAvailable: Invalid value: -1: must be greater than or equal to 0
        spec.selector.matchLabels: Invalid value: "B_!": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        spec.unhealthyPodEvictionPolicy: Unsupported value: "Never": supported values: "AlwaysAllow", "IfHealthyBudget""#]],
    );
}

#[test]
fn a_status_counts_and_has_conditions() {
    let mut new = web(json!({}));
    new["status"] = json!({
        "disruptionsAllowed": -1,
        "conditions": [{ "type": "a b", "status": "Yes", "reason": "x y" }],
    });
    update_errors(
        PLURAL,
        new,
        web(json!({})),
        Part::Status,
        expect![[r#"
        status.conditions[0].type: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        status.conditions[0].status: Unsupported value: "Yes": supported values: "False", "True", "Unknown"
        status.conditions[0].lastTransitionTime: Required value
        status.conditions[0].reason: Invalid value: "x y": a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')
        status.disruptionsAllowed: Invalid value: -1: must be greater than or equal to 0"#]],
    );
    let shown = defaulted(PLURAL, web(json!({})));
    assert_eq!(
        shown.get(&["status"]),
        Some(&json!({
            "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0,
        }))
    );
}

#[test]
fn printed() {
    let mut budget = web(json!({ "maxUnavailable": "25%" }));
    budget["status"] = json!({ "disruptionsAllowed": 2 });
    check_row(
        PLURAL,
        budget,
        200,
        expect![[r#"
        Name: web
        Min Available: N/A
        Max Unavailable: 25%
        Allowed Disruptions: 2 (number)
        Age: 3m20s"#]],
    );
}
