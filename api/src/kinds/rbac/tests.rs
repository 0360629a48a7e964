//! Rules, subjects and role references of the four RBAC kinds.

use crate::kinds::testing::{check_errors, check_row, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn binding(kind: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
        "metadata": { "name": "system:readers" },
        "roleRef": { "kind": "ClusterRole", "name": "view" },
        "subjects": [
            { "kind": "User", "name": "ann" },
            { "kind": "Group", "name": "ops" },
            { "kind": "ServiceAccount", "name": "default", "namespace": "shop" },
        ],
    })
}

#[test]
fn printed() {
    check_row(
        "clusterrolebindings",
        binding("ClusterRoleBinding"),
        0,
        expect![[r#"
            Name: system:readers
            Role: ClusterRole/view
            Age: <unknown>
            Users: ann
            Groups: ops
            ServiceAccounts: shop/default"#]],
    );
}

#[test]
fn subjects_and_roles() {
    let mut bad = binding("ClusterRoleBinding");
    bad["roleRef"] = json!({ "kind": "Role", "name": "a/b", "apiGroup": "x" });
    bad["subjects"] = json!([
        { "kind": "ServiceAccount", "name": "Default", "apiGroup": "x" },
        { "kind": "User", "apiGroup": "x" },
        { "kind": "Robot", "name": "r2" },
    ]);
    check_errors(
        "clusterrolebindings",
        bad,
        expect![[r#"
        roleRef.apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io"
        roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"
        roleRef.name: Invalid value: "a/b": may not contain '/'
        subjects[0].name: Invalid value: "Default": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        subjects[0].apiGroup: Unsupported value: "x": supported values: ""
        subjects[0].namespace: Required value
        subjects[1].name: Required value
        subjects[1].apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io"
        subjects[2].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group""#]],
    );
}

#[test]
fn the_role_stays() {
    let mut new = binding("RoleBinding");
    new["roleRef"]["name"] = "edit".into();
    update_errors(
        "rolebindings",
        new,
        binding("RoleBinding"),
        Part::Main,
        expect![[
            r#"roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"edit"}: cannot change roleRef"#
        ]],
    );
}

#[test]
fn rules_name_resources_or_urls() {
    let role = |rules: Value| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": { "name": "a" }, "rules": rules,
        })
    };
    let rules = json!([
        { "verbs": ["get"], "resources": ["pods"], "apiGroups": [""] },
        {},
        { "verbs": ["get"], "nonResourceURLs": ["/healthz"], "resources": ["pods"] },
    ]);
    check_errors(
        "roles",
        role(rules),
        expect![[r#"
        rules[1].verbs: Required value: verbs must contain at least one value
        rules[1].apiGroups: Required value: resource rules must supply at least one api group
        rules[1].resources: Required value: resource rules must supply at least one resource
        rules[2].nonResourceURLs: Invalid value: ["/healthz"]: namespaced rules cannot apply to non-resource URLs
        rules[2].nonResourceURLs: Invalid value: ["/healthz"]: rules cannot apply to both regular resources and non-resource URLs"#]],
    );
    let mut cluster = role(json!([]));
    cluster["aggregationRule"] = json!({});
    check_errors(
        "clusterroles",
        cluster,
        expect![
            "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil"
        ],
    );
}
