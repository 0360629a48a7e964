//! Durations, times and patterns that stand in an expression as they are: those that are none are
//! told of when it is written, not when it runs.

use super::Problems;
use crate::cel::visit;
use crate::{go_duration, go_regexp, timestamp};
use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr, LiteralValue};

pub fn check(root: &IdedExpr, problems: &mut Problems) {
    visit(root, &mut |node| {
        if let Expr::Call(call) = &node.expr
            && let Some(argument) = argument(call)
            && let Expr::Literal(LiteralValue::String(text)) = &argument.expr
            && !is_good(&call.func_name, text.inner())
        {
            problems.add(argument.id, || {
                format!("invalid {} argument", call.func_name)
            });
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
        "duration" => go_duration::parse(text).is_ok(),
        "timestamp" => timestamp::parse(text).is_some(),
        _ => go_regexp::compile(text).is_ok(),
    }
}
