//! Defaults, validation and printed columns of flow schemas.

use crate::kinds::testing::{check_errors, check_row, check_spec, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn schema(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
        "metadata": { "name": name }, "spec": spec,
    })
}

fn with_rule(rule: Value) -> Value {
    let spec = json!({ "priorityLevelConfiguration": { "name": "low" }, "rules": [rule] });
    schema("mine", spec)
}

#[test]
fn defaulted() {
    check_spec(
        "flowschemas",
        json!({ "kind": "FlowSchema" }),
        expect![[r#"
            matchingPrecedence: 1000
            priorityLevelConfiguration: {"name":""}"#]],
    );
}

#[test]
fn printed() {
    let mut one = schema(
        "mine",
        json!({ "priorityLevelConfiguration": { "name": "low" } }),
    );
    one["status"] = json!({ "conditions": [{ "type": "Dangling", "status": "False" }] });
    one["spec"]["distinguisherMethod"] = json!({ "type": "ByUser" });
    check_row(
        "flowschemas",
        one,
        0,
        expect![[r#"
        Name: mine
        PriorityLevel: low
        MatchingPrecedence: 1000 (number)
        DistinguisherMethod: ByUser
        Age: <unknown>
        MissingPL: False"#]],
    );
    check_row(
        "flowschemas",
        schema("bare", json!({})),
        0,
        expect![[r#"
        Name: bare
        PriorityLevel: 
        MatchingPrecedence: 1000 (number)
        DistinguisherMethod: <none>
        Age: <unknown>
        MissingPL: ?"#]],
    );
}

#[test]
fn the_spec() {
    check_errors(
        "flowschemas",
        schema("mine", json!({})),
        expect![
            "spec.priorityLevelConfiguration.name: Required value: must reference a priority level"
        ],
    );
    check_errors(
        "flowschemas",
        schema(
            "mine",
            json!({
                "matchingPrecedence": 1,
                "distinguisherMethod": { "type": "ByMood" },
                "priorityLevelConfiguration": { "name": "Low" },
            }),
        ),
        expect![[r#"
            spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1
            spec.distinguisherMethod.type: Unsupported value: {"Type":"ByMood"}: supported values: "ByNamespace", "ByUser"
            spec.priorityLevelConfiguration.name: Invalid value: "Low": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]],
    );
    check_errors(
        "flowschemas",
        schema(
            "mine",
            json!({ "matchingPrecedence": 10_001, "priorityLevelConfiguration": { "name": "a" } }),
        ),
        expect!["spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000"],
    );
}

#[test]
fn subjects() {
    check_errors(
        "flowschemas",
        with_rule(json!({
            "subjects": [
                { "kind": "User" },
                { "kind": "Group", "group": { "name": "" }, "user": { "name": "u" } },
                { "kind": "ServiceAccount", "serviceAccount": { "name": "*" } },
                { "kind": "Robot", "user": { "name": "u" } },
            ],
        })),
        expect![[r#"
            spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'
            spec.rules[0].subjects[1].group.name: Required value
            spec.rules[0].subjects[1].user: Forbidden: user is forbidden when subject kind is not 'User'
            spec.rules[0].subjects[2].serviceAccount.namespace: Required value: must specify namespace for service account
            spec.rules[0].subjects[3].kind: Unsupported value: "Robot": supported values: "Group", "ServiceAccount", "User"
            spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty"#]],
    );
}

#[test]
fn rules() {
    check_errors(
        "flowschemas",
        with_rule(json!({
            "subjects": [],
            "resourceRules": [
                {},
                {
                    "verbs": ["*", "get"], "apiGroups": ["*", "apps"], "resources": ["*", "pods"],
                    "namespaces": ["*", "default"],
                },
                {
                    "verbs": ["dance"], "apiGroups": [""], "resources": ["pods"],
                    "namespaces": ["No"],
                },
                { "verbs": ["*"], "apiGroups": [""], "resources": ["pods"], "clusterScope": true },
            ],
            "nonResourceRules": [
                { "verbs": ["get"], "nonResourceURLs": [] },
                { "verbs": ["get"], "nonResourceURLs": ["*", "/a"] },
                {
                    "verbs": ["get"],
                    "nonResourceURLs": ["", "/", "a", "/a b", "//", "/*/a", "/a*", "/a/*"],
                },
            ],
        })),
        expect![[r#"
            spec.rules[0].subjects: Required value: subjects must contain at least one value
            spec.rules[0].resourceRules[0].verbs: Required value: verbs must contain at least one value
            spec.rules[0].resourceRules[0].apiGroups: Required value: resource rules must supply at least one api group
            spec.rules[0].resourceRules[0].resources: Required value: resource rules must supply at least one resource
            spec.rules[0].resourceRules[0].namespaces: Required value: resource rules that are not cluster scoped must supply at least one namespace
            spec.rules[0].resourceRules[1].verbs: Invalid value: ["*","get"]: if '*' is present, must not specify other verbs
            spec.rules[0].resourceRules[1].apiGroups: Invalid value: ["*","apps"]: if '*' is present, must not specify other api groups
            spec.rules[0].resourceRules[1].resources: Invalid value: ["*","pods"]: if '*' is present, must not specify other resources
            spec.rules[0].resourceRules[1].namespaces: Invalid value: ["*","default"]: if '*' is present, must not specify other namespaces
            spec.rules[0].resourceRules[2].verbs: Unsupported value: ["dance"]: supported values: "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"
            spec.rules[0].resourceRules[2].namespaces[0]: Invalid value: "No": each member of this list must be '*' or a DNS-1123 label; a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
            spec.rules[0].nonResourceRules[0].nonResourceURLs: Required value: nonResourceURLs must contain at least one value
            spec.rules[0].nonResourceRules[1].nonResourceURLs: Invalid value: ["*","/a"]: if '*' is present, must not specify other non-resource URLs
            spec.rules[0].nonResourceRules[2].nonResourceURLs[0]: Invalid value: "": must not be empty
            spec.rules[0].nonResourceRules[2].nonResourceURLs[2]: Invalid value: "a": must start with slash
            spec.rules[0].nonResourceRules[2].nonResourceURLs[3]: Invalid value: "/a b": must not contain white-space
            spec.rules[0].nonResourceRules[2].nonResourceURLs[4]: Invalid value: "//": must not contain double slash
            spec.rules[0].nonResourceRules[2].nonResourceURLs[5]: Invalid value: "/*/a": wildcard can only do suffix matching
            spec.rules[0].nonResourceRules[2].nonResourceURLs[6]: Invalid value: "/a*": wildcard can only do suffix matching"#]],
    );
}

#[test]
fn the_mandatory_are_fixed() {
    let spec = json!({
        "matchingPrecedence": 10_000, "priorityLevelConfiguration": { "name": "catch-all" },
    });
    let one = schema("catch-all", spec);
    update_errors(
        "flowschemas",
        one.clone(),
        one,
        Part::Main,
        expect![[
            r#"spec: Invalid value: {"PriorityLevelConfiguration":{"Name":"catch-all"},"MatchingPrecedence":10000,"DistinguisherMethod":null,"Rules":null}: spec of 'catch-all' must equal the fixed value"#
        ]],
    );
}

#[test]
fn conditions_have_a_type_each_once() {
    let old = schema(
        "mine",
        json!({ "priorityLevelConfiguration": { "name": "low" } }),
    );
    let mut new = old.clone();
    new["status"] = json!({ "conditions": [{ "type": "A" }, { "type": "A" }, {}] });
    update_errors(
        "flowschemas",
        new,
        old,
        Part::Status,
        expect![[r#"
        status.conditions[1].type: Duplicate value: "A"
        status.conditions[2].type: Required value"#]],
    );
}
