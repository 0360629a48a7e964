//! Text in, text out, for the tests of the kinds.

use crate::catalogue;
use crate::object::Object;
use crate::resource::{Part, Resource};
use expect_test::Expect;
use serde_json::Value;

/// The row of a plural; the first group that has it.
pub fn resource(plural: &str) -> &'static Resource {
    catalogue::all()
        .iter()
        .find(|row| row.plural == plural)
        .unwrap()
}

pub fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

/// The object as it comes from the wire.
pub fn defaulted(plural: &str, value: Value) -> Object {
    let mut object = object(value);
    resource(plural).rules.default(&mut object);
    object
}

/// The errors of a create, one a line.
pub fn check_errors(plural: &str, value: Value, expected: Expect) {
    let rules = resource(plural).rules;
    let mut object = defaulted(plural, value);
    rules.prepare_create(&mut object);
    let errors = rules.validate_create(&object);
    expected.assert_eq(&lines(&errors));
}

/// The errors of an update, one a line.
pub fn update_errors(plural: &str, new: Value, old: Value, part: Part<'_>, expected: Expect) {
    let rules = resource(plural).rules;
    let old = defaulted(plural, old);
    let mut new = defaulted(plural, new);
    rules.prepare_update(&mut new, &old, part);
    expected.assert_eq(&lines(&rules.validate_update(&new, &old, part)));
}

fn lines(errors: &[crate::field::FieldError]) -> String {
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// What the defaulted object has under `spec`, a field a line.
pub fn check_spec(plural: &str, value: Value, expected: Expect) {
    let object = defaulted(plural, value);
    let spec = object.get(&["spec"]).and_then(Value::as_object).unwrap();
    let lines: Vec<String> = spec
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    expected.assert_eq(&lines.join("\n"));
}

/// `Column: cell`, one a line.
pub fn check_row(plural: &str, value: Value, now: i64, expected: Expect) {
    let rules = resource(plural).rules;
    let cells = rules.cells(&defaulted(plural, value), now);
    let columns = rules.columns();
    assert_eq!(columns.len(), cells.len());
    let lines: Vec<String> = columns
        .iter()
        .zip(cells)
        .map(|(column, cell)| match cell {
            Value::String(text) => format!("{}: {text}", column.name),
            other => format!("{}: {other} (number)", column.name),
        })
        .collect();
    expected.assert_eq(&lines.join("\n"));
}
