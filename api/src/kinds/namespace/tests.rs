//! The life of a namespace: label, finalizer, phase.

use crate::kinds::testing::{check_errors, check_row, defaulted, resource, update_errors};
use crate::resource::{Part, Requester};
use expect_test::expect;
use serde_json::{Value, json};

fn shop() -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } })
}

#[test]
fn a_new_namespace_is_active_and_held() {
    let rules = resource("namespaces").rules;
    let mut object = defaulted("namespaces", shop());
    rules.prepare_create(&mut object);
    expect![[r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"labels":{"kubernetes.io/metadata.name":"shop"},"name":"shop"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}"#]].assert_eq(&object.to_value().to_string());
    check_row(
        "namespaces",
        object.into_value(),
        0,
        expect![[r#"
        Name: shop
        Status: Active
        Age: <unknown>"#]],
    );
}

#[test]
fn a_generated_name_gets_its_label() {
    let rules = resource("namespaces").rules;
    let mut object = defaulted(
        "namespaces",
        json!({ "metadata": { "generateName": "a-" } }),
    );
    object.set(&["metadata", "name"], "a-x".into());
    rules.stamp(&mut object, None, Part::Main, &Requester::default(), "");
    assert_eq!(object.label("kubernetes.io/metadata.name"), Some("a-x"));
}

#[test]
fn finalizers_are_known_or_have_a_domain() {
    let mut bad = shop();
    bad["spec"] = json!({ "finalizers": ["mine", "example.com/a"] });
    check_errors(
        "namespaces",
        bad.clone(),
        expect![[
            r#"spec.finalizers: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified"#
        ]],
    );
    // Through the main resource they do not change at all.
    update_errors("namespaces", bad.clone(), shop(), Part::Main, expect![]);
    update_errors(
        "namespaces",
        bad,
        shop(),
        Part::Other("finalize"),
        expect![[
            r#"spec.finalizers: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified"#
        ]],
    );
}

#[test]
fn the_phase_follows_the_deletion() {
    let mut new = shop();
    new["status"] = json!({ "phase": "Terminating" });
    update_errors(
        "namespaces",
        new.clone(),
        shop(),
        Part::Status,
        expect![[
            r#"status.Phase: Invalid value: "Terminating": may only be 'Active' if `deletionTimestamp` is empty"#
        ]],
    );
    new["metadata"]["deletionTimestamp"] = "1970-01-01T00:00:00Z".into();
    update_errors("namespaces", new, shop(), Part::Status, expect![]);
}
