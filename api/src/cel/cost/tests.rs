//! Costs as upstream estimates them.

use crate::cel::compile;
use crate::cel::environment::Environment;
use crate::cel::extents::Extents;
use crate::cel::types::Type;
use serde_json::{Value, json};

static COSTS: &str = include_str!("costs.txt");
const MORE: u64 = 1_000_000_000;

fn schema() -> Value {
    let text = |length: u64| json!({ "type": "string", "maxLength": length });
    let list =
        |most: u64, items: Value| json!({ "type": "array", "maxItems": most, "items": items });
    let map = |most: u64, values: Value| json!({ "type": "object", "maxProperties": most, "additionalProperties": values });
    let object = |properties: Value| json!({ "type": "object", "properties": properties });
    let integer = json!({ "type": "integer" });
    let any = json!({ "x-kubernetes-int-or-string": true });
    let short_any = json!({ "x-kubernetes-int-or-string": true, "maxLength": 4 });
    let formatted = |format: &str| json!({ "type": "string", "format": format });
    let keyed = json!({
        "type": "object", "required": ["n"],
        "properties": { "n": text(8), "x": integer, "t": list(3, text(4)) },
    });
    let required = json!({
        "type": "object", "required": ["n", "x"], "properties": { "n": text(8), "x": integer },
    });
    object(json!({
        "s": { "type": "string" }, "sm": text(10), "sm2": text(10),
        "se": { "type": "string", "enum": ["a", "bcd"] },
        "i": integer, "d": { "type": "number" }, "b": { "type": "boolean" },
        "l": { "type": "array", "items": { "type": "string" } },
        "lm": list(7, text(5)), "lm2": list(9, text(5)),
        "li": list(20, integer.clone()), "ld": list(20, json!({ "type": "number" })),
        "ll": list(4, list(5, text(6))),
        "lo": list(10, keyed), "lu": { "type": "array", "items": required },
        "m": map(6, text(9)), "mu": { "type": "object", "additionalProperties": integer },
        "mo": map(5, object(json!({ "z": text(11) }))), "ml": map(5, list(3, text(2))),
        "o": object(json!({ "a": text(3), "bb": object(json!({ "c": list(6, text(3)) })) })),
        "ios": short_any, "iou": any,
        "dt": formatted("date-time"), "da": formatted("date"), "du": formatted("duration"),
        "by": { "type": "string", "format": "byte", "maxLength": 12 }, "byu": formatted("byte"),
        "for": text(5), "x-y": text(5),
    }))
}

fn environment() -> Environment {
    let schema = schema();
    let mut environment = Environment::default();
    let of_self = environment.of_schema(&schema, false, "T").unwrap();
    environment
        .sized(Extents::of_schema(&schema, false).unwrap())
        .with("self", of_self.clone())
        .with("oldSelf", of_self)
}

#[test]
fn rules_cost_what_they_cost_upstream() {
    let environment = environment();
    let lines = COSTS.lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    let mut wrong = Vec::new();
    for (cost, rule) in lines.filter_map(|line| line.split_once('\t')) {
        let found = compile(rule, &environment).unwrap().cost.unwrap();
        let fits = match cost {
            "more" => found > MORE,
            cost => cost.parse() == Ok(found),
        };
        if !fits {
            wrong.push(format!("{rule}: {found} and not {cost}"));
        }
        count += 1;
    }
    assert_eq!(wrong.join("\n"), "");
    assert!(count > 200);
}

/// What an expression looks at counts as often as it can be there.
#[test]
fn values_are_counted_by_the_least_that_they_take() {
    let count = |schema: Value, is_resource: bool| {
        Extents::of_schema(&schema, is_resource)
            .unwrap()
            .count_max()
    };
    const REQUEST: u64 = 3 * 1024 * 1024;
    assert_eq!(count(json!({ "type": "integer" }), false), REQUEST / 2);
    assert_eq!(count(json!({ "type": "boolean" }), false), REQUEST / 5);
    let object = json!({
        "type": "object", "required": ["ab", "c", "d"],
        "properties": {
            "ab": { "type": "string" }, "c": { "type": "integer", "default": 1 },
            "d": { "type": "array", "items": { "type": "integer" } },
        },
    });
    // {"ab":"","d":[]} without what has a default: braces, names, quotes, colons and commas.
    assert_eq!(
        count(object, false),
        REQUEST / (2 + (2 + 2 + 4) + (1 + 2 + 4) + 1)
    );
    let resource = json!({ "type": "object", "required": ["kind"] });
    assert_eq!(count(resource, true), REQUEST / (2 + (4 + 2 + 4) + 1));
}

/// Without anything known of variables nothing is estimated.
#[test]
fn no_cost_without_extents() {
    let environment = Environment::default().with("v", Type::Dyn);
    assert_eq!(compile("v == 1", &environment).unwrap().cost, None);
}
