//! Operators of node selectors.

use super::*;
use k8s_openapi::api::core::v1::Node;
use serde_json::json;

fn matches(term: serde_json::Value) -> bool {
    let node: Node = serde_json::from_value(json!({
        "metadata": { "name": "near", "labels": { "zone": "a", "cores": "4", "odd": "" } },
    }))
    .unwrap();
    let terms = [serde_json::from_value(term).unwrap()];
    any_term_matches(&terms, &NodeFacts::of(&node))
}

fn on_label(key: &str, operator: &str, values: &[&str]) -> bool {
    matches(json!({
        "matchExpressions": [{ "key": key, "operator": operator, "values": values }],
    }))
}

#[test]
fn each_operator_holds_and_fails() {
    assert!(on_label("zone", "In", &["b", "a"]) && !on_label("zone", "In", &["b"]));
    assert!(on_label("zone", "NotIn", &["b"]) && !on_label("zone", "NotIn", &["a"]));
    assert!(
        on_label("none", "NotIn", &["a"]),
        "a missing label is not in any set"
    );
    assert!(on_label("odd", "Exists", &[]) && !on_label("none", "Exists", &[]));
    assert!(on_label("none", "DoesNotExist", &[]) && !on_label("odd", "DoesNotExist", &[]));
    assert!(on_label("cores", "Gt", &["3"]) && !on_label("cores", "Gt", &["4"]));
    assert!(on_label("cores", "Lt", &["5"]) && !on_label("zone", "Lt", &["5"]));
    assert!(!on_label("zone", "Near", &["a"]));
}

#[test]
fn fields_match_the_name_alone_and_an_empty_term_matches_nothing() {
    let field = |key: &str, value: &str| {
        matches(json!({
            "matchFields": [{ "key": key, "operator": "In", "values": [value] }],
        }))
    };
    assert!(field("metadata.name", "near") && !field("metadata.name", "far"));
    assert!(!field("metadata.uid", "near"));
    assert!(!matches(json!({})));
}
