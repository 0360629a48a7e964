//! `anyOf`, `oneOf`, `allOf` and `not`: schemas that narrow another one.

use super::{Fault, Found, Validator};
use crate::json;
use serde_json::Value;

pub fn check<'s>(
    validator: &Validator<'_, 's>,
    schema: &'s Value,
    value: &Value,
    at: &str,
) -> Found {
    let mut found = Found::default();
    let quoted = crate::decode::quoted(at);
    let results = |junctor: &str| -> Vec<Found> {
        let clauses = json::list(schema, junctor).iter();
        clauses
            .map(|clause| validator.check(clause, value, at))
            .collect()
    };
    any_of(&mut found, results("anyOf"), &quoted);
    one_of(&mut found, results("oneOf"), &quoted);
    let all = results("allOf");
    let valid = all.iter().filter(|one| one.is_valid()).count();
    let count = all.len();
    for one in all {
        found.merge(one);
    }
    if valid != count {
        let more = if valid == 0 { ". None validated" } else { "" };
        let message = format!("{quoted} must validate all the schemas (allOf){more}");
        found.add(Fault::composite(message));
    }
    if let Some(not) = json::some(schema, "not")
        && validator.check(not, value, at).is_valid()
    {
        let message = format!("{quoted} must not validate the schema (not)");
        found.add(Fault::composite(message));
    }
    found.matches += 1;
    found
}

fn any_of(found: &mut Found, mut results: Vec<Found>, quoted: &str) {
    if results.is_empty() {
        return;
    }
    if let Some(first) = results.iter().position(Found::is_valid) {
        found.merge(results.swap_remove(first));
        return;
    }
    let message = format!("{quoted} must validate at least one schema (anyOf)");
    found.add(Fault::composite(message));
    found.merge(best(results));
}

fn one_of(found: &mut Found, mut results: Vec<Found>, quoted: &str) {
    if results.is_empty() {
        return;
    }
    let valid: Vec<usize> = (0..results.len())
        .filter(|index| results[*index].is_valid())
        .collect();
    let message =
        |how: &str| format!("{quoted} must validate one and only one schema (oneOf). {how}");
    match valid[..] {
        [one] => found.merge(results.swap_remove(one)),
        [] => {
            found.add(Fault::composite(message("Found none valid")));
            found.merge(best(results));
        }
        _ => {
            let how = format!("Found {} valid alternatives", valid.len());
            found.add(Fault::composite(message(&how)));
        }
    }
}

/// The first of those that fit best.
fn best(results: Vec<Found>) -> Found {
    let mut best: Option<Found> = None;
    for one in results {
        if best.as_ref().is_none_or(|best| one.matches > best.matches) {
            best = Some(one);
        }
    }
    best.unwrap_or_default()
}
