//! Go's view of values.

use super::*;
use expect_test::expect;
use serde_json::json;

#[test]
fn fields_have_go_names_in_go_order_and_unset_ones_show() {
    let taint = json!({ "key": "a", "effect": "NoSchedule", "value": "x" });
    expect![[r#"{"Key":"a","Value":"x","Effect":"NoSchedule","TimeAdded":null}"#]]
        .assert_eq(&internal("io.k8s.api.core.v1.Taint", &taint));
    let selector = json!({ "matchExpressions": [
        { "scopeName": "PriorityClass", "operator": "In", "values": ["high"] },
    ] });
    expect![[
        r#"{"MatchExpressions":[{"ScopeName":"PriorityClass","Operator":"In","Values":["high"]}]}"#
    ]]
    .assert_eq(&internal("io.k8s.api.core.v1.ScopeSelector", &selector));
}

#[test]
fn common_types_keep_their_json_form() {
    let selector = json!({ "matchLabels": { "a": "b" } });
    let name = "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";
    expect![[r#"{"matchLabels":{"a":"b"}}"#]].assert_eq(&internal(name, &selector));
    assert_eq!(go_name("apiGroup"), "APIGroup");
    assert_eq!(go_name("podIP"), "PodIP");
}
