//! How much there may be to match defaults with.

use super::*;
use serde_json::json;

/// Takes a megabyte and some when compiled.
fn large(more: usize) -> String {
    format!("^[\\p{{L}}\\p{{N}}-]{{1,63}}a{{{more}}}$")
}

fn spent(root: &Value, budget: &Budget) -> Option<String> {
    let errors = validate(root, budget, &Path::root("s"));
    let mut texts = errors.iter().map(ToString::to_string);
    texts.find(|text| text.contains("take too long to compile"))
}

#[test]
fn what_is_compiled_for_defaults_counts() {
    let properties = (0..100).map(|at| {
        let property = json!({ "type": "string", "pattern": large(at), "default": "b" });
        (format!("p{at}"), property)
    });
    let properties: Map<String, Value> = properties.collect();
    let root = json!({ "type": "object", "properties": properties });
    assert!(spent(&root, &Budget::default()).is_some());
}

#[test]
fn what_all_defaults_have_is_compiled_once() {
    let root = |pattern: &str| {
        let properties = (0..2_000).map(|at| {
            let property = json!({ "type": "string", "pattern": pattern, "default": "b" });
            (format!("p{at}"), property)
        });
        let properties: Map<String, Value> = properties.collect();
        json!({ "type": "object", "properties": properties })
    };
    assert_eq!(spent(&root(&large(1)), &Budget::default()), None);
    // No pattern is none to be compiled.
    let budget = Budget::default();
    while budget.compile(&large(1)).is_ok() {}
    assert!(spent(&root("^c$"), &budget).is_some());
    assert_eq!(spent(&root(""), &budget), None);
}

/// More than are kept are compiled over and over.
#[test]
fn what_is_compiled_again_counts_again() {
    let properties = (0..65).map(|at| {
        let property = json!({ "type": "string", "pattern": format!("^a{{{at}}}$") });
        (format!("p{at}"), property)
    });
    let properties: Map<String, Value> = properties.collect();
    let item: Map<String, Value> = (0..65)
        .map(|at| (format!("p{at}"), Value::from("a".repeat(at))))
        .collect();
    let defaults = |count: usize| {
        let items = json!({ "type": "object", "properties": properties });
        let list = json!({ "type": "array", "items": items, "default": vec![&item; count] });
        json!({ "type": "object", "properties": { "list": list } })
    };
    assert_eq!(spent(&defaults(2), &Budget::default()), None);
    assert!(spent(&defaults(100), &Budget::default()).is_some());
}
