//! A pass tells what remains and what went wrong.

use super::*;
use expect_test::expect;
use serde_json::json;

fn resource(group: &str, plural: &str) -> Resource {
    Resource {
        api: kube::core::ApiResource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: String::new(),
            plural: plural.to_owned(),
        },
        namespaced: true,
        verbs: Vec::new(),
    }
}

fn list(finalizers: &[&[&str]]) -> ObjectList<Meta> {
    let items = finalizers
        .iter()
        .map(|all| json!({"metadata": {"name": "x", "finalizers": all}}));
    serde_json::from_value(json!({
        "metadata": {"resourceVersion": "7"}, "items": items.collect::<Vec<_>>(),
    }))
    .unwrap()
}

#[test]
fn a_pass_tells_what_remains_and_what_went_wrong() {
    let mut pass = Pass::default();
    pass.add(judge(&resource("", "pods"), "a", &list(&[&[]]), 30));
    pass.add(judge(
        &resource("apps", "deployments"),
        "a",
        &list(&[&["x/one"], &["x/one", "x/two"]]),
        0,
    ));
    pass.add(judge(&resource("", "configmaps"), "a", &list(&[&[]]), 0));
    pass.add(judge(&resource("", "secrets"), "a", &list(&[]), 0));
    let told = pass.conditions().into_iter();
    let told = told.map(|one| {
        let message = one.message.replace(": ", ":\n  ").replace(", ", ",\n  ");
        format!("{} {}\n  {message}", one.condition, one.reason)
    });
    let told: Vec<_> = told.collect();
    expect![[r#"
        NamespaceDeletionContentFailure ContentDeletionFailed
          Failed to delete all resource types,
          1 remaining:
          unexpected items still remain in namespace:
          a for gvr:
          /v1,
          Resource=configmaps
        NamespaceContentRemaining SomeResourcesRemain
          Some resources are remaining:
          configmaps. has 1 resource instances,
          deployments.apps has 2 resource instances,
          pods. has 1 resource instances
        NamespaceFinalizersRemaining SomeFinalizersRemain
          Some content in the namespace has finalizers remaining:
          x/one in 2 resource instances,
          x/two in 1 resource instances"#]]
    .assert_eq(&told.join("\n"));
    assert_eq!(pass.estimate_seconds, 30);
}
