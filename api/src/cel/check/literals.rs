//! Durations, times and patterns that stand in an expression as they are: those that are none are
//! told of when it is written, not when it runs.

use super::Problems;
use crate::cel::budget::{Budget, PATTERNS_SPENT};
use crate::cel::visit;
use crate::{go_duration, timestamp};
use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr, LiteralValue};

pub fn check(root: &IdedExpr, budget: &Budget, problems: &mut Problems) {
    visit(root, &mut |node| {
        if let Expr::Call(call) = &node.expr
            && let Some(argument) = argument(call)
            && let Expr::Literal(LiteralValue::String(text)) = &argument.expr
            && let Some(why) = problem(&call.func_name, text.inner(), budget)
        {
            problems.add(argument.id, || why);
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

fn problem(function: &str, text: &str, budget: &Budget) -> Option<String> {
    let is_good = match function {
        "duration" => go_duration::parse(text).is_ok(),
        "timestamp" => timestamp::parse(text).is_some(),
        _ => match budget.pattern(text) {
            Err(why) if why == PATTERNS_SPENT => return Some(why),
            checked => checked.is_ok(),
        },
    };
    (!is_good).then(|| format!("invalid {function} argument"))
}
