//! Defaults, validation and printed columns of policies that change.

use crate::kinds::testing::{check_errors, check_row, check_spec};
use expect_test::expect;
use serde_json::{Value, json};

const PLURAL: &str = "mutatingadmissionpolicies";

fn policy(more: Value) -> Value {
    let mut spec = json!({
        "reinvocationPolicy": "Never",
        "matchConstraints": { "resourceRules": [{
            "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["deployments"],
        }] },
        "mutations": [{
            "patchType": "ApplyConfiguration",
            "applyConfiguration": { "expression": "Object{spec: Object.spec{replicas: 3}}" },
        }],
    });
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    json!({ "kind": "MutatingAdmissionPolicy", "metadata": { "name": "p" }, "spec": spec })
}

#[test]
fn defaulted_and_good() {
    check_spec(
        PLURAL,
        policy(json!({})),
        expect![[r#"
        failurePolicy: "Fail"
        matchConstraints: {"matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{},"resourceRules":[{"apiGroups":["apps"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["deployments"],"scope":"*"}]}
        mutations: [{"applyConfiguration":{"expression":"Object{spec: Object.spec{replicas: 3}}"},"patchType":"ApplyConfiguration"}]
        reinvocationPolicy: "Never""#]],
    );
    check_errors(PLURAL, policy(json!({})), expect![[""]]);
    let patch = json!([{
        "patchType": "JSONPatch",
        "jsonPatch": { "expression":
            "[JSONPatch{op: 'add', path: '/a/' + jsonpatch.escapeKey('x/y'), value: variables.a}]"
        },
    }]);
    let variables = json!([{ "name": "a", "expression": "object.metadata.name" }]);
    check_errors(
        PLURAL,
        policy(json!({ "mutations": patch, "variables": variables })),
        expect![[""]],
    );
}

#[test]
fn printed() {
    check_row(
        PLURAL,
        policy(json!({ "paramKind": { "apiVersion": "v1", "kind": "ConfigMap" } })),
        0,
        expect![[r#"
            Name: p
            Mutations: 1 (number)
            ParamKind: v1/ConfigMap
            Age: <unknown>"#]],
    );
}

#[test]
fn mutations() {
    check_errors(
        PLURAL,
        policy(json!({ "mutations": [] })),
        expect!["spec.mutations: Required value: mutations must contain at least one item"],
    );
    check_errors(
        PLURAL,
        policy(json!({
            "reinvocationPolicy": "Always",
            "mutations": [
                {},
                { "patchType": "Odd" },
                { "patchType": "JSONPatch", "applyConfiguration": { "expression": "Object{}" } },
                { "patchType": "JSONPatch", "jsonPatch": { "expression": " " } },
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": { "expression": "1" },
                    "jsonPatch": { "expression": "[]" },
                },
            ],
        })),
        expect![[r#"
            spec.mutations[0].patchType: Required value
            spec.mutations[1].patchType: Unsupported value: "Odd": supported values: "ApplyConfiguration", "JSONPatch"
            spec.mutations[2].jsonPatch: Required value: must be specified when patchType is JSONPatch
            spec.mutations[2].applyConfiguration: Invalid value: "{applyConfiguration}": must not be specified when patchType is JSONPatch
            spec.mutations[3].jsonPatch.expression: Required value
            spec.mutations[4].applyConfiguration.expression: Invalid value: "1": must evaluate to Object but got int
            spec.mutations[4].jsonPatch: Invalid value: "{jsonPatch}": must not be specified when patchType is ApplyConfiguration
            spec.reinvocationPolicy: Unsupported value: "Always": supported values: "IfNeeded", "Never""#]],
    );
}

#[test]
fn a_deletion_is_not_changed() {
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["pods"],
    });
    check_errors(
        PLURAL,
        policy(json!({ "matchConstraints": { "resourceRules": [rule] } })),
        expect![[
            r#"spec.matchConstraints.resourceRules.operations: Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE""#
        ]],
    );
    check_errors(
        PLURAL,
        json!({ "metadata": { "name": "p" } }),
        expect![[r#"
            spec.matchConstraints: Required value
            spec.mutations: Required value: mutations must contain at least one item
            spec.reinvocationPolicy: Required value"#]],
    );
}
