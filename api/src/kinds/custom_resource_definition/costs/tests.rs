//! Rules that may cost too much, told as upstream tells it.

use crate::kinds::testing::{check_errors, defaulted, update_errors};
use crate::resource::Part;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

const PLURAL: &str = "customresourcedefinitions";

fn definition(properties: &Value, description: &str) -> Value {
    let schema = json!({
        "type": "object", "properties": properties, "description": description,
    });
    json!({
        "kind": "CustomResourceDefinition", "metadata": { "name": "foos.acme.io" },
        "spec": {
            "group": "acme.io", "scope": "Namespaced",
            "names": { "plural": "foos", "kind": "Foo" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

fn check(properties: Value, expected: Expect) {
    check_errors(PLURAL, definition(&properties, ""), expected);
}

fn list(most: Value, items: Value) -> Value {
    json!({ "type": "array", "maxItems": most, "items": items })
}

/// A string of so many characters with a rule.
fn text(length: Value, rule: &str) -> Value {
    let rules = json!([{ "rule": rule }]);
    json!({ "type": "string", "maxLength": length, "x-kubernetes-validations": rules })
}

#[test]
fn a_rule_costs_as_often_as_its_values_can_be_there() {
    let contains = "self.contains('abcdefghijklm')";
    check(
        json!({ "a": list(Value::Null, text(Value::Null, contains)) }),
        expect![[r#"
            spec.validation.openAPIV3Schema.properties[a].items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)
            spec.validation.openAPIV3Schema.properties[a].items.x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema
            spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"#]],
    );
    check(
        json!({ "a": list(20_000.into(), list(100.into(), text(10.into(), contains))) }),
        expect![
            "spec.validation.openAPIV3Schema.properties[a].items.items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of 1.8x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
        ],
    );
    check(
        json!({ "a": list(1_200_000.into(), text(10.into(), contains)) }),
        expect![
            "spec.validation.openAPIV3Schema.properties[a].items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of 1.080000x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
        ],
    );
    check(
        json!({ "a": list(1000.into(), text(10.into(), contains)) }),
        expect![[""]],
    );
    let message = json!([{ "rule": "true", "messageExpression": "self.map(x, self.exists(y, x == y) ? 'a' : 'b').join(',')" }]);
    let mut all = list(4000.into(), json!({ "type": "string", "maxLength": 10 }));
    all["x-kubernetes-validations"] = message;
    check(
        json!({ "a": all }),
        expect![[r#"
        spec.validation.openAPIV3Schema.properties[a].x-kubernetes-validations[0].messageExpression: Forbidden: estimated messageExpression cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)
        spec.validation.openAPIV3Schema.properties[a].x-kubernetes-validations[0].messageExpression: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema
        spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"#]],
    );
}

#[test]
fn all_rules_of_a_schema_have_a_bound_too() {
    let rule = "self.matches('^[a-z]+[0-9]+$')";
    let properties = |most: u64| {
        let named = (0..5).map(|one| {
            let items = text((30 + one).into(), rule);
            (format!("p{one}"), list(most.into(), items))
        });
        Value::Object(named.collect())
    };
    check(properties(100_000), expect![[""]]);
    check(
        properties(600_000),
        expect![[r#"
        spec.validation.openAPIV3Schema.properties[p0].items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of 3.2x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)
        spec.validation.openAPIV3Schema.properties[p1].items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of 3.2x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)
        spec.validation.openAPIV3Schema.properties[p2].items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of 3.2x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)
        spec.validation.openAPIV3Schema.properties[p3].items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of 3.4x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)
        spec.validation.openAPIV3Schema.properties[p4].items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of 3.4x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)
        spec.validation.openAPIV3Schema.properties[p3].items.x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema
        spec.validation.openAPIV3Schema.properties[p4].items.x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema
        spec.validation.openAPIV3Schema.properties[p0].items.x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema
        spec.validation.openAPIV3Schema.properties[p1].items.x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema
        spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of 1.6x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"#]],
    );
}

#[test]
fn a_schema_that_is_stored_may_have_costly_rules() {
    let contains = "self.contains('abcdefghijklm')";
    let costly = json!({ "a": list(1_200_000.into(), text(10.into(), contains)) });
    let old = defaulted(PLURAL, definition(&costly, "")).into_value();
    let update = |new: Value, expected: Expect| {
        update_errors(PLURAL, new, old.clone(), Part::Main, expected);
    };
    update(definition(&costly, ""), expect![[""]]);
    update(
        definition(&costly, "another"),
        expect![
            "spec.validation.openAPIV3Schema.properties[a].items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of 1.080000x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
        ],
    );
}
