//! Numbers: bounds, factors, and what their formats hold. Whole numbers are compared as such.

use super::{Fault, Found, What};
use crate::apply::value::compare_numbers;
use crate::json;
use serde_json::{Number, Value};

/// Up to here a float tells each whole number from the next.
const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;

/// Whether a float is one of the whole numbers that JSON holds exactly.
pub fn is_integer(value: f64) -> bool {
    value.is_finite() && value.abs() <= WHOLE_MAX && value.fract() == 0.0
}

pub fn check(schema: &Value, number: &Number, at: &str) -> Found {
    let mut found = Found::default();
    let value = Value::Number(number.clone());
    let float = number.as_f64().unwrap_or(0.0);
    if let Some(fault) = out_of_range(schema, number, "Checked", at) {
        found.add(fault);
    }
    if let Some(factor) = json::some(schema, "multipleOf").and_then(Value::as_number) {
        found.extend_range(schema, factor, "MultipleOf", at);
        let step = factor.as_f64().unwrap_or(0.0);
        if step <= 0.0 {
            let shown = go_float(factor);
            found.add(Fault {
                at: at.to_owned(),
                what: What::Invalid(factor.clone().into()),
                message: format!("factor MultipleOf declared for {at} must be positive: {shown}"),
            });
        } else if !is_multiple(number, float, step) {
            let message = format!("should be a multiple of {}", go_float(factor));
            found.add(Fault::invalid(at, value.clone(), message));
        }
    }
    for (bound, exclusive, name, words) in [
        ("maximum", "exclusiveMaximum", "Maximum boundary", "less"),
        ("minimum", "exclusiveMinimum", "Minimum boundary", "greater"),
    ] {
        let Some(limit) = json::some(schema, bound).and_then(Value::as_number) else {
            continue;
        };
        found.extend_range(schema, limit, name, at);
        let is_strict = json::flag(schema, exclusive);
        let order = compare_numbers(number, limit);
        let order = if bound == "maximum" {
            order
        } else {
            order.reverse()
        };
        if order.is_gt() || is_strict && order.is_eq() {
            let equal = if is_strict { "" } else { " or equal to" };
            let message = format!("should be {words} than{equal} {}", go_float(limit));
            found.add(Fault::invalid(at, value.clone(), message));
        }
    }
    found.matches += 1;
    found
}

impl Found {
    fn extend_range(&mut self, schema: &Value, bound: &Number, name: &str, at: &str) {
        if let Some(fault) = out_of_range(schema, bound, name, at) {
            self.add(fault);
        }
    }
}

fn is_multiple(number: &Number, float: f64, step: f64) -> bool {
    match number.as_i64() {
        // A factor below one is none of whole numbers; upstream calls it not positive.
        #[allow(clippy::cast_possible_truncation)] // As Go converts it.
        Some(whole) if step >= 1.0 => whole % (step as i64) == 0,
        _ if step < 1.0 => is_integer(1.0 / step * float),
        _ => is_integer(float / step),
    }
}

/// A number that its format does not hold.
fn out_of_range(schema: &Value, number: &Number, name: &str, at: &str) -> Option<Fault> {
    let kind = match super::types(schema)[..] {
        [one] => one,
        _ => return None,
    };
    let format = json::text(schema, "format");
    let (format, fits) = match (kind, format) {
        ("integer", "int32") => (
            format,
            number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) || whole_i32(number),
        ),
        ("integer", "int64") => (format, is_whole(number)),
        ("integer", _) => ("", is_whole(number)),
        #[allow(clippy::cast_possible_truncation)] // Whether it does is the question.
        ("number", "float") => (
            format,
            number.as_f64().is_none_or(|n| (n as f32).is_finite()),
        ),
        _ => return None,
    };
    if fits {
        return None;
    }
    Some(Fault::composite(if format.is_empty() {
        format!("{name} value must be of type {kind} (default format) in {at}")
    } else {
        format!("{name} value must be of type {kind} with format {format} in {at}")
    }))
}

fn is_whole(number: &Number) -> bool {
    number.is_i64() || number.as_f64().is_some_and(is_integer)
}

fn whole_i32(number: &Number) -> bool {
    let in_range = |n: f64| is_integer(n) && n.abs() <= f64::from(i32::MAX);
    !number.is_i64() && number.as_f64().is_some_and(in_range)
}

/// `%v` of a float64.
pub fn go_float(number: &Number) -> String {
    const EXPONENT_FROM: f64 = 1e21;
    const EXPONENT_BELOW: f64 = 1e-4;
    let Some(value) = number.as_f64() else {
        return number.to_string();
    };
    let size = value.abs();
    if size != 0.0 && !(EXPONENT_BELOW..EXPONENT_FROM).contains(&size) {
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent),
        };
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    value.to_string()
}
