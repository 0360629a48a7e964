//! What a ServiceAccount keeps of its references.

use crate::kinds::testing::{check_row, defaulted, resource};
use expect_test::expect;
use serde_json::json;

#[test]
fn references_keep_the_name_alone() {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": { "name": "default", "namespace": "shop" },
        "secrets": [{ "name": "a", "uid": "1" }],
    });
    let mut object = defaulted("serviceaccounts", account);
    resource("serviceaccounts")
        .rules
        .prepare_create(&mut object);
    expect![[r#"[{"name":"a"}]"#]].assert_eq(&object.get(&["secrets"]).unwrap().to_string());
    check_row(
        "serviceaccounts",
        object.into_value(),
        0,
        expect![[r#"
        Name: default
        Age: <unknown>"#]],
    );
}

#[test]
fn bounds_on_secrets_are_of_old() {
    let with = |annotations: serde_json::Value| {
        let metadata = json!({ "name": "a", "annotations": annotations });
        defaulted("serviceaccounts", json!({ "metadata": metadata }))
    };
    let rules = resource("serviceaccounts").rules;
    let bound = with(json!({ "kubernetes.io/enforce-mountable-secrets": "true" }));
    let free = with(json!({}));
    expect![[r#"metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"#]]
    .assert_eq(&rules.warnings(&bound).join("\n"));
    assert!(rules.warnings(&free).is_empty());
    assert_eq!(rules.warnings_on_update(&bound, &free).len(), 1);
    assert!(rules.warnings_on_update(&bound, &bound).is_empty());
}
