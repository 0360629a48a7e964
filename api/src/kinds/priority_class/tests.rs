//! Reserved names and values of priority classes.

use crate::kinds::testing::{check_errors, check_row, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn class(name: &str, value: i64) -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": { "name": name }, "value": value,
    })
}

#[test]
fn printed() {
    check_row(
        "priorityclasses",
        class("high", 1000),
        0,
        expect![[r#"
        Name: high
        Value: 1000 (number)
        Global-Default: false (number)
        Age: <unknown>
        PreemptionPolicy: PreemptLowerPriority"#]],
    );
}

#[test]
fn the_system_keeps_its_own() {
    check_errors(
        "priorityclasses",
        class("high", 1_000_000_001),
        expect!["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
    );
    check_errors(
        "priorityclasses",
        class("system-mine", 1),
        expect![
            "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-mine is not a known system priority class"
        ],
    );
    check_errors(
        "priorityclasses",
        class("system-node-critical", 2_000_001_000),
        expect![],
    );
}

#[test]
fn the_value_stays() {
    update_errors(
        "priorityclasses",
        class("a", 2),
        class("a", 1),
        Part::Main,
        expect!["value: Forbidden: may not be changed in an update."],
    );
}
