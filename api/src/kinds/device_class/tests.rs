//! Selectors and configuration of a DeviceClass.

use crate::kinds::testing::check_errors;
use expect_test::expect;
use serde_json::{Value, json};

fn class(spec: Value) -> Value {
    json!({ "metadata": { "name": "gpu" }, "spec": spec })
}

#[test]
fn expressions_are_read_and_configuration_is_for_a_driver() {
    let good = json!({
        "selectors": [{ "cel": { "expression": "device.driver == 'gpu.example.com'" } }],
        "config": [{ "opaque": { "driver": "gpu.example.com", "parameters": { "a": 1 } } }],
        "extendedResourceName": "example.com/gpu",
    });
    check_errors("deviceclasses", class(good), expect![]);
    let bad = json!({
        "selectors": [
            { "cel": { "expression": "device.driver ==" } }, { "cel": { "expression": "1" } },
            { "cel": { "expression": "driver == 'a'" } }, {},
        ],
        "config": [{}, { "opaque": { "parameters": [1] } }],
        "extendedResourceName": "gpu",
    });
    check_errors(
        "deviceclasses",
        class(bad),
        expect![[r#"
        spec.selectors[0].cel.expression: Invalid value: "device.driver ==": compilation failed: ERROR: <input>:1:17: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
         | device.driver ==
         | ................^
        spec.selectors[1].cel.expression: Invalid value: "1": must evaluate to bool or the unknown type, not int
        spec.selectors[2].cel.expression: Invalid value: "driver == 'a'": compilation failed: ERROR: <input>:1:1: undeclared reference to 'driver' (in container '')
         | driver == 'a'
         | ^
        spec.selectors[3].cel: Required value
        spec.config[0].opaque: Required value
        spec.config[1].opaque.driver: Required value
        spec.config[1].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object
        spec.extendedResourceName: Invalid value: "gpu": must be a valid extended resource name"#]],
    );
}

/// A scheduler has to evaluate it for each device.
#[test]
fn a_selector_that_may_cost_too_much_is_refused() {
    let class = |expression: String| {
        json!({
            "kind": "DeviceClass", "metadata": { "name": "c" },
            "spec": { "selectors": [{ "cel": { "expression": expression } }] },
        })
    };
    let domains = "device.attributes.all(d, device.attributes[d].all(n, n != 'x'))";
    check_errors("deviceclasses", class(domains.to_owned()), expect![[""]]);
    check_errors(
        "deviceclasses",
        class(format!("lists.range(1000).all(i, {domains})")),
        expect!["spec.selectors[0].cel.expression: Forbidden: too complex, exceeds cost limit"],
    );
}
