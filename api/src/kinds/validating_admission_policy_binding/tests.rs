//! Validation and printed columns of bindings.

use crate::kinds::testing::{check_errors, check_row, check_spec};
use expect_test::expect;
use serde_json::{Value, json};

const PLURAL: &str = "validatingadmissionpolicybindings";

fn binding(spec: Value) -> Value {
    json!({
        "kind": "ValidatingAdmissionPolicyBinding", "metadata": { "name": "b" }, "spec": spec,
    })
}

#[test]
fn defaulted() {
    let spec = json!({ "matchResources": { "resourceRules": [{}] } });
    check_spec(
        PLURAL,
        binding(spec),
        expect![[
            r#"matchResources: {"matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{},"resourceRules":[{"scope":"*"}]}"#
        ]],
    );
}

#[test]
fn printed() {
    for (param, cell) in [
        (Value::Null, "<unset>"),
        (json!({ "name": "a" }), "*/a"),
        (json!({ "name": "a", "namespace": "b" }), "b/a"),
        (
            json!({ "selector": { "matchLabels": { "a": "b" } } }),
            "&LabelSelector{MatchLabels:map[string]string{a: b,},\
             MatchExpressions:[]LabelSelectorRequirement{},}",
        ),
    ] {
        let object = binding(json!({ "policyName": "p", "paramRef": param }));
        let cells = super::super::admission_registration::binding::cells(
            &crate::kinds::testing::object(object),
            0,
        );
        assert_eq!(cells[2], cell);
    }
    check_row(
        PLURAL,
        binding(json!({ "policyName": "p" })),
        0,
        expect![[r#"
            Name: b
            PolicyName: p
            ParamRef: <unset>
            Age: <unknown>"#]],
    );
}

#[test]
fn validated() {
    check_errors(
        PLURAL,
        binding(json!({})),
        expect![[r#"
        spec.policyName: Required value
        spec.validationActions: Required value: at least one validation action is required"#]],
    );
    check_errors(
        PLURAL,
        binding(json!({
            "policyName": "A",
            "validationActions": ["Deny", "Warn", "Deny", "Shout"],
            "paramRef": { "name": "a/b", "selector": {}, "parameterNotFoundAction": "Cry" },
        })),
        expect![[r#"
            spec.policyName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            spec.paramRef.name: Invalid value: "a/b": may not contain '/'
            spec.paramRef.name: Forbidden: name and selector are mutually exclusive
            spec.paramRef.selector: Forbidden: name and selector are mutually exclusive
            spec.paramRef.parameterNotFoundAction: Unsupported value: "Cry": supported values: "Deny", "Allow"
            spec.validationActions[2]: Duplicate value: "Deny"
            spec.validationActions[3]: Unsupported value: "Shout": supported values: "Audit", "Deny", "Warn"
            spec.validationActions: Invalid value: ["Deny","Warn","Deny","Shout"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"#]],
    );
    check_errors(
        PLURAL,
        binding(json!({ "policyName": "a", "validationActions": ["Audit"], "paramRef": {} })),
        expect![[r#"
            spec.paramRef: Required value: one of name or selector must be specified
            spec.paramRef.parameterNotFoundAction: Required value"#]],
    );
}
