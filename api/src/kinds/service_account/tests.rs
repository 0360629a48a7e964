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
