//! Defaults, validation and printed columns of policies that judge.

use crate::kinds::testing::{check_errors, check_row, check_spec, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

const PLURAL: &str = "validatingadmissionpolicies";

fn policy(more: Value) -> Value {
    let mut spec = json!({
        "matchConstraints": { "resourceRules": [{
            "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
            "resources": ["deployments"],
        }] },
        "validations": [{ "expression": "object.spec.replicas <= 5" }],
    });
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    json!({ "kind": "ValidatingAdmissionPolicy", "metadata": { "name": "p" }, "spec": spec })
}

#[test]
fn defaulted_and_good() {
    check_spec(
        PLURAL,
        policy(json!({})),
        expect![[r#"
        failurePolicy: "Fail"
        matchConstraints: {"matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{},"resourceRules":[{"apiGroups":["apps"],"apiVersions":["v1"],"operations":["CREATE","UPDATE"],"resources":["deployments"],"scope":"*"}]}
        validations: [{"expression":"object.spec.replicas <= 5"}]"#]],
    );
    check_errors(PLURAL, policy(json!({})), expect![[""]]);
}

#[test]
fn printed() {
    let params = json!({ "apiVersion": "a.b/v1", "kind": "Limit" });
    check_row(
        PLURAL,
        policy(json!({ "paramKind": params })),
        0,
        expect![[r#"
            Name: p
            Validations: 1 (number)
            ParamKind: a.b/v1/Limit
            Age: <unknown>"#]],
    );
    check_row(
        PLURAL,
        policy(json!({})),
        0,
        expect![[r#"
        Name: p
        Validations: 1 (number)
        ParamKind: <unset>
        Age: <unknown>"#]],
    );
}

#[test]
fn required() {
    check_errors(
        PLURAL,
        json!({ "metadata": { "name": "p" } }),
        expect![[r#"
            spec.matchConstraints: Required value
            spec.validations: Required value: validations or auditAnnotations must contain at least one item
            spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item"#]],
    );
    check_errors(
        PLURAL,
        policy(json!({
            "failurePolicy": "Maybe",
            "paramKind": { "apiVersion": "a/b/c", "kind": "9" },
            "matchConstraints": {},
        })),
        expect![[r#"
            spec.failurePolicy: Unsupported value: "Maybe": supported values: "Fail", "Ignore"
            spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c
            spec.paramKind.kind: Invalid value: "9": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
            spec.matchConstraints.resourceRules: Required value"#]],
    );
}

#[test]
fn resource_rules() {
    let rule = |resources: Value| {
        json!({
            "apiGroups": ["*", "apps"], "apiVersions": [""], "operations": ["*", "READ"],
            "resources": resources, "scope": "Near", "resourceNames": ["a/b", "c", "c"],
        })
    };
    check_errors(
        PLURAL,
        policy(json!({ "matchConstraints": {
            "matchPolicy": "Fuzzy",
            "resourceRules": [rule(json!(["pods/*", "pods/log", "*/scale", "a/scale", ""]))],
            "excludeResourceRules": [
                { "resources": ["*/*", "*", "pods"], "operations": [] },
            ],
        } })),
        expect![[r#"
            spec.matchConstraints.matchPolicy: Unsupported value: "Fuzzy": supported values: "Equivalent", "Exact"
            spec.matchConstraints.resourceRules[0].resourceNames[0]: Invalid value: "a/b": may not contain '/'
            spec.matchConstraints.resourceRules[0].resourceNames[2]: Duplicate value: "c"
            spec.matchConstraints.resourceRules[0].operations: Invalid value: ["*","READ"]: if '*' is present, must not specify other operations
            spec.matchConstraints.resourceRules[0].operations[1]: Unsupported value: "READ": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"
            spec.matchConstraints.resourceRules[0].apiGroups: Invalid value: ["*","apps"]: if '*' is present, must not specify other API groups
            spec.matchConstraints.resourceRules[0].apiVersions[0]: Required value
            spec.matchConstraints.resourceRules[0].resources[1]: Invalid value: "pods/log": if 'pods/*' is present, must not specify pods/log
            spec.matchConstraints.resourceRules[0].resources[3]: Invalid value: "a/scale": if '*/scale' is present, must not specify a/scale
            spec.matchConstraints.resourceRules[0].resources[4]: Required value
            spec.matchConstraints.resourceRules[0].scope: Unsupported value: "Near": supported values: "*", "Cluster", "Namespaced"
            spec.matchConstraints.excludeResourceRules[0].operations: Required value
            spec.matchConstraints.excludeResourceRules[0].apiGroups: Required value
            spec.matchConstraints.excludeResourceRules[0].apiVersions: Required value
            spec.matchConstraints.excludeResourceRules[0].resources: Invalid value: ["*/*","*","pods"]: if '*/*' is present, must not specify other resources
            spec.matchConstraints.excludeResourceRules[0].resources: Invalid value: ["*/*","*","pods"]: if '*' is present, must not specify other resources without subresources"#]],
    );
}

#[test]
fn expressions() {
    check_errors(
        PLURAL,
        policy(json!({
            "matchConditions": [
                { "name": "a", "expression": "request.name ==" },
                { "name": "a", "expression": "params.x" },
                { "name": "b/c/d", "expression": " " },
                { "expression": "'text'" },
            ],
            "variables": [
                { "name": "1a", "expression": "object.spec" },
                { "name": "for", "expression": "" },
            ],
            "validations": [
                { "expression": "" },
                { "expression": "nobody", "message": " ", "messageExpression": " " },
                { "expression": "1", "message": "a\nb", "reason": "Rage", "messageExpression": "2" },
                { "expression": "variables.foo", "messageExpression": "authorizer.path('/').x" },
            ],
        })),
        expect![[r#"
            spec.matchConditions[0].expression: Invalid value: "request.name ==": compilation failed: ERROR: <input>:1:16: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
             | request.name ==
             | ...............^
            spec.matchConditions[1].expression: Invalid value: "params.x": compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')
             | params.x
             | ^
            spec.matchConditions[1].name: Duplicate value: "a"
            spec.matchConditions[2].expression: Required value
            spec.matchConditions[2].name: Invalid value: "b/c/d": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')
            spec.matchConditions[3].expression: Invalid value: "'text'": must evaluate to bool but got string
            spec.matchConditions[3].name: Required value
            spec.variables[0].name: Invalid value: "1a": must be a valid CEL identifier
            spec.variables[1].name: Invalid value: "for": must be a valid CEL identifier
            spec.variables[1].expression: Required value: expression is not specified
            spec.validations[0].expression: Required value: expression is not specified
            spec.validations[1].expression: Invalid value: "nobody": compilation failed: ERROR: <input>:1:1: undeclared reference to 'nobody' (in container '')
             | nobody
             | ^
            spec.validations[1].messageExpression: Invalid value: " ": must be non-empty if specified
            spec.validations[1].message: Invalid value: " ": must be non-empty if specified
            spec.validations[2].expression: Invalid value: "1": must evaluate to bool but got int
            spec.validations[2].messageExpression: Invalid value: "2": must evaluate to string but got int
            spec.validations[2].message: Invalid value: "a\nb": must not contain line breaks
            spec.validations[2].reason: Unsupported value: "Rage": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"
            spec.validations[3].expression: Invalid value: "variables.foo": compilation failed: ERROR: <input>:1:10: undefined field 'foo'
             | variables.foo
             | .........^
            spec.validations[3].messageExpression: Invalid value: "authorizer.path('/').x": compilation failed: ERROR: <input>:1:1: undeclared reference to 'authorizer' (in container '')
             | authorizer.path('/').x
             | ^
            ERROR: <input>:1:21: unexpected failed resolution of 'kubernetes.authorization.PathCheck'
             | authorizer.path('/').x
             | ....................^"#]],
    );
    check_errors(
        PLURAL,
        policy(json!({ "validations": [{ "expression": "variables.foo" }] })),
        expect![[r#"
            spec.validations[0].expression: Invalid value: "variables.foo": compilation failed: ERROR: <input>:1:1: undeclared reference to 'variables' (in container '')
             | variables.foo
             | ^"#]],
    );
}

#[test]
fn a_variable_is_there_before_it_is_used() {
    check_errors(
        PLURAL,
        policy(json!({
            "variables": [
                { "name": "a", "expression": "variables.b" },
                { "name": "b", "expression": "variables.a.c" },
            ],
            "validations": [{ "expression": "variables.a && variables.c" }],
        })),
        expect![[r#"
            spec.variables[0].expression: Invalid value: "variables.b": compilation failed: ERROR: <input>:1:10: undefined field 'b'
             | variables.b
             | .........^
            spec.validations[0].expression: Invalid value: "variables.a && variables.c": compilation failed: ERROR: <input>:1:25: undefined field 'c'
             | variables.a && variables.c
             | ........................^"#]],
    );
}

#[test]
fn audit_annotations() {
    check_errors(
        PLURAL,
        policy(json!({ "auditAnnotations": [
            { "key": "a", "valueExpression": "'x'" },
            { "key": "a", "valueExpression": " 1 " },
            { "key": "b c", "valueExpression": "" },
        ] })),
        expect![[r#"
            spec.auditAnnotations[1].valueExpression: Invalid value: " 1 ": must evaluate to one of [string null_type] but got int
            spec.auditAnnotations[1].key: Duplicate value: "a"
            spec.auditAnnotations[2].key: Invalid value: "p/b c": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            spec.auditAnnotations[2].valueExpression: Required value: valueExpression is not specified"#]],
    );
}

#[test]
fn the_status() {
    let old = policy(json!({}));
    let mut new = old.clone();
    new["status"] = json!({
        "typeChecking": { "expressionWarnings": [{}] },
        "conditions": [{ "type": "A", "status": "Yes" }],
    });
    update_errors(
        PLURAL,
        new,
        old,
        Part::Status,
        expect![[r#"
        status.typeChecking.expressionWarnings[0].warning: Required value
        status.typeChecking.expressionWarnings[0].fieldRef: Required value
        status.conditions[0].status: Unsupported value: "Yes": supported values: "False", "True", "Unknown"
        status.conditions[0].lastTransitionTime: Required value
        status.conditions[0].reason: Required value"#]],
    );
}
