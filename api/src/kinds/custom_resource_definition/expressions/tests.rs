//! When nothing is looked at any more.

use super::*;
use serde_json::json;

#[test]
fn nothing_is_built_when_the_budget_is_spent() {
    let (budget, costs) = (Budget::default(), Costs::new(false));
    let place = Place {
        budget: &budget,
        costs: &costs,
        values_max: Some(1),
        is_resource: false,
        uncorrelatable: None,
    };
    let found = || {
        // Of no type, which is found out while the types are built.
        let errors = compile(
            &[json!({ "rule": "true" })],
            &json!({}),
            place,
            &Path::root("s"),
        );
        errors.iter().map(ToString::to_string).collect::<String>()
    };
    assert!(found().ends_with("failed to retrieve type information for x-kubernetes-validations"));
    while budget.take(1_000_000).is_ok() {}
    assert!(found().ends_with("the expressions of one object take too long to check"));
}
