//! Validation and printed cells of an IngressClass.

use crate::kinds::testing::{check_errors, check_row, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn class(spec: Value) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass",
        "metadata": {
            "name": "nginx", "creationTimestamp": "1970-01-01T00:00:00Z",
            "annotations": { "ingressclass.kubernetes.io/is-default-class": "true" },
        },
        "spec": spec,
    })
}

#[test]
fn controllers_and_parameters() {
    let bad = json!({
        "controller": "x", "parameters": { "scope": "Namespace", "kind": "a/b", "apiGroup": "Q" },
    });
    check_errors(
        "ingressclasses",
        class(bad),
        expect![[r#"
        spec.controller: Invalid value: "x": must be a domain-prefixed path (such as "acme.io/foo")
        spec.parameters.apiGroup: Invalid value: "Q": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        spec.parameters.kind: Invalid value: "a/b": may not contain '/'
        spec.parameters.name: Required value
        spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"#]],
    );
    let bad = json!({
        "controller": "X.io/a b", "parameters": { "kind": "K", "name": "n", "namespace": "x" },
    });
    check_errors(
        "ingressclasses",
        class(bad),
        expect![[r#"
        spec.controller: Invalid value: "X.io": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        spec.controller: Invalid value: "a b": Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')
        spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"#]],
    );
    let old = class(json!({ "controller": "a.io/b" }));
    let new = class(json!({}));
    update_errors(
        "ingressclasses",
        new,
        old,
        Part::Main,
        expect![[r#"
        spec.controller: Invalid value: "": field is immutable
        spec.controller: Required value"#]],
    );
}

#[test]
fn printed() {
    let spec = json!({
        "controller": "a.io/b", "parameters": { "apiGroup": "k.io", "kind": "K", "name": "n" },
    });
    check_row(
        "ingressclasses",
        class(spec),
        200,
        expect![[r#"
        Name: nginx (default)
        Controller: a.io/b
        Parameters: K.k.io/n
        Age: 3m20s"#]],
    );
}
