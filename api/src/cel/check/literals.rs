//! Durations, times and patterns that stand in an expression as they are: those that are none are
//! told of when it is written, not when it runs.

use super::Problem;
use crate::cel::visit;
use crate::timestamp;
use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr, LiteralValue};

/// A pattern that compiles to more is refused.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;

pub fn check(root: &IdedExpr, problems: &mut Vec<Problem>) {
    visit(root, &mut |node| {
        if let Expr::Call(call) = &node.expr
            && let Some(argument) = argument(call)
            && let Expr::Literal(LiteralValue::String(text)) = &argument.expr
            && !is_good(&call.func_name, text.inner())
        {
            let message = format!("invalid {} argument", call.func_name);
            let id = argument.id;
            problems.push(Problem { id, message });
        }
    });
}

fn argument(call: &CallExpr) -> Option<&IdedExpr> {
    let is_member = call.target.is_some();
    match (call.func_name.as_str(), is_member, &call.args[..]) {
        ("duration" | "timestamp", false, [argument])
        | ("matches", false, [_, argument])
        | ("matches", true, [argument]) => Some(argument),
        _ => None,
    }
}

fn is_good(function: &str, text: &str) -> bool {
    match function {
        "duration" => is_duration(text),
        "timestamp" => timestamp::parse(text).is_some(),
        _ => {
            let mut builder = regex::RegexBuilder::new(text);
            builder.size_limit(PATTERN_BYTES_MAX).build().is_ok()
        }
    }
}

/// `1h30m`, `-1.5s`, `0`.
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 8] = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"];
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    if text == "0" {
        return true;
    }
    let mut rest = text;
    while !rest.is_empty() {
        let unit = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let number = &rest[..rest.len() - unit.len()];
        let end = unit
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(unit.len());
        let has_digits = number.bytes().any(|byte| byte.is_ascii_digit());
        if !has_digits || number.matches('.').count() > 1 || !UNITS.contains(&&unit[..end]) {
            return false;
        }
        rest = &unit[end..];
    }
    !text.is_empty()
}
