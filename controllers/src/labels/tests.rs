//! A selector and labels in, a verdict out.

use serde_json::json;

use super::*;

fn matches(selector: serde_json::Value, labels: serde_json::Value) -> bool {
    let selector: LabelSelector = serde_json::from_value(selector).unwrap();
    let labels: BTreeMap<String, String> = serde_json::from_value(labels).unwrap();
    Selector::from_label_selector(&selector)
        .unwrap()
        .matches(Some(&labels))
}

#[test]
fn every_requirement_must_hold() {
    let selector = json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["front", "edge"]},
            {"key": "track", "operator": "NotIn", "values": ["canary"]},
            {"key": "owner", "operator": "Exists"},
            {"key": "old", "operator": "DoesNotExist"},
        ],
    });
    let fits = json!({"app": "web", "tier": "edge", "owner": "me"});
    assert!(matches(selector.clone(), fits.clone()));
    for (key, value) in [
        ("app", "db"),
        ("tier", "back"),
        ("track", "canary"),
        ("old", ""),
    ] {
        let mut labels = fits.clone();
        labels[key] = json!(value);
        assert!(!matches(selector.clone(), labels), "{key}={value}");
    }
    assert!(!matches(selector, json!({"app": "web", "tier": "edge"})));
}

#[test]
fn an_empty_selector_matches_everything_and_an_unknown_operator_is_no_selector() {
    assert!(matches(json!({}), json!({"any": "thing"})));
    let odd = json!({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]});
    let odd: LabelSelector = serde_json::from_value(odd).unwrap();
    assert_eq!(Selector::from_label_selector(&odd), None);
}
