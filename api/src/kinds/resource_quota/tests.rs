//! Validation, scopes, warnings and cells of a ResourceQuota.

use crate::kinds::testing::{check_errors, check_row, object, resource, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn quota() -> Value {
    json!({
        "metadata": { "name": "q", "creationTimestamp": "1970-01-01T00:00:00Z" },
        "spec": { "hard": { "pods": "10", "requests.cpu": "2", "limits.cpu": "1" } },
        "status": {
            "hard": { "pods": "10", "limits.cpu": "2" }, "used": { "pods": "1", "limits.cpu": "500m" },
        },
    })
}

#[test]
fn printed() {
    check_row(
        "resourcequotas",
        quota(),
        60,
        expect![[r#"
        Name: q
        Request: pods: 1/10
        Limit: limits.cpu: 500m/2
        Age: 60s"#]],
    );
}

#[test]
fn wrong_in_many_ways() {
    let mut bad = quota();
    bad["spec"] = json!({
        "hard": { "pods": "1.5", "bananas": "1", "requests.storage": "-1", "count/a.b": "1" },
        "scopes": ["BestEffort", "NotBestEffort", "Sometimes"],
        "scopeSelector": { "matchExpressions": [
            { "scopeName": "PriorityClass", "operator": "In" },
            { "scopeName": "Terminating", "operator": "In", "values": ["x"] },
            { "scopeName": "Nothing", "operator": "Exists", "values": ["x"] },
        ] },
    });
    check_errors(
        "resourcequotas",
        bad,
        expect![[r#"
        spec.hard[bananas]: Invalid value: "bananas": must be a standard resource type or fully qualified
        spec.hard[bananas]: Invalid value: "bananas": must be a standard resource for quota
        spec.hard[pods]: Invalid value: "1500m": must be an integer
        spec.hard[requests.storage]: Invalid value: "-1": must be greater than or equal to 0
        spec.scopes: Invalid value: ["BestEffort","NotBestEffort","Sometimes"]: unsupported scope applied to resource
        spec.scopes: Invalid value: ["BestEffort","NotBestEffort","Sometimes"]: unsupported scope applied to resource
        spec.scopes: Invalid value: ["BestEffort","NotBestEffort","Sometimes"]: unsupported scope
        spec.scopes: Invalid value: ["BestEffort","NotBestEffort","Sometimes"]: conflicting scopes
        spec.scopeSelector.matchExpressions: Invalid value: {"MatchExpressions":[{"ScopeName":"PriorityClass","Operator":"In","Values":null},{"ScopeName":"Terminating","Operator":"In","Values":["x"]},{"ScopeName":"Nothing","Operator":"Exists","Values":["x"]}]}: unsupported scope applied to resource
        spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector
        spec.scopeSelector.matchExpressions: Invalid value: {"MatchExpressions":[{"ScopeName":"PriorityClass","Operator":"In","Values":null},{"ScopeName":"Terminating","Operator":"In","Values":["x"]},{"ScopeName":"Nothing","Operator":"Exists","Values":["x"]}]}: unsupported scope applied to resource
        spec.scopeSelector.matchExpressions.operator: Invalid value: "In": must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity
        spec.scopeSelector.matchExpressions.scopeName: Invalid value: "Nothing": unsupported scope
        spec.scopeSelector.matchExpressions.values: Invalid value: ["x"]: must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"#]],
    );
}

#[test]
fn scopes_stay_and_requests_above_limits_are_warned_of() {
    let mut new = quota();
    new["spec"]["scopes"] = json!(["NotTerminating"]);
    update_errors(
        "resourcequotas",
        new,
        quota(),
        Part::Main,
        expect![[r#"spec.scopes: Invalid value: ["NotTerminating"]: field is immutable"#]],
    );
    let rules = resource("resourcequotas").rules;
    expect!["ResourceQuota requests.cpu (2) should be less than limits.cpu (1)"]
        .assert_eq(&rules.warnings(&object(quota())).join("\n"));
}
