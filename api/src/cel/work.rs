//! How the work of evaluating an expression grows with the size of what it looks at: as which power.
//!
//! An upper bound for expressions that whoever evaluates cannot stop. What a loop ranges over is as
//! large as all of its elements together, so a loop over an element within a loop over the whole
//! grows no faster than the outer one; one over the whole again is its square.

use super::{call_name, functions::Functions};
use cel::IdedExpr;
use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, LiteralValue};

/// A range that an expression makes of nothing is this long at most, to count as a constant.
const RANGE_MAX: i64 = 1000;

/// Operators and functions that look at no more than one element, and whose result is small.
const CONSTANT: &[&str] = &[
    "!_",
    "-_",
    "@not_strictly_false",
    "_%_",
    "_&&_",
    "_*_",
    "_-_",
    "_/_",
    "_||_",
    "hasValue",
    "size",
    "type",
];
/// Those that give what they are given, or a part of it.
const PASSED_ON: &[&str] = &[
    "_?._",
    "_?_:_",
    "_[?_]",
    "_[_]",
    "dyn",
    "optional.of",
    "or",
    "orValue",
    "value",
];
/// Those that look at no more than the smaller one of two has.
const SMALLER: &[&str] = &[
    "_!=_",
    "_<=_",
    "_<_",
    "_==_",
    "_>=_",
    "_>_",
    "endsWith",
    "startsWith",
];

/// Powers of the size of the variables.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    steps: u32,
    /// Of the result.
    size: u32,
}

/// The power; `None` where there is no bound. Recurses as deep as the expression.
pub fn power(expression: &IdedExpr, functions: &Functions) -> Option<u32> {
    let mut counter = Counter {
        functions,
        names: Vec::new(),
    };
    counter.count(expression).map(|work| work.steps)
}

struct Counter<'e> {
    functions: &'e Functions,
    /// Names that loops have made, with the size of what they stand for; the innermost last.
    names: Vec<(&'e str, u32)>,
}

impl<'e> Counter<'e> {
    fn count(&mut self, expression: &'e IdedExpr) -> Option<Work> {
        match &expression.expr {
            Expr::Literal(_) | Expr::Unspecified => Some(Work::default()),
            Expr::Ident(name) => {
                let known = self.names.iter().rev().find(|(known, _)| known == name);
                let size = known.map_or(1, |(_, size)| *size);
                Some(Work { steps: 0, size })
            }
            Expr::Select(select) => self.count(&select.operand),
            Expr::Call(call) => {
                let name = call_name(call, self.functions);
                if name == "lists.range" && !is_small(call.args.first()) {
                    return None;
                }
                // What stands before the name of a package's function is the package.
                let target = call.target.as_deref().filter(|_| name == call.func_name);
                let operands = target.into_iter().chain(&call.args);
                let all: Vec<Work> = operands.map(|one| self.count(one)).collect::<Option<_>>()?;
                let sizes = all.iter().map(|work| work.size);
                let largest = sizes.clone().max().unwrap_or(0);
                let (own, size) = match &*name {
                    "distinct" => (largest * 2, largest),
                    name if PASSED_ON.contains(&name) => (0, largest),
                    name if CONSTANT.contains(&name) => (0, 0),
                    name if SMALLER.contains(&name) => (sizes.min().unwrap_or(0), 0),
                    "@in" | "contains" | "matches" => (largest, 0),
                    _ => (largest, largest),
                };
                let steps = all.iter().map(|work| work.steps).max().unwrap_or(0);
                Some(Work {
                    steps: steps.max(own),
                    size,
                })
            }
            Expr::Comprehension(one) => self.count_loop(one),
            Expr::List(list) => self.count_all(list.elements.iter()),
            Expr::Map(map) => self.count_all(map.entries.iter().flat_map(|one| parts(&one.expr))),
            Expr::Struct(made) => {
                self.count_all(made.entries.iter().flat_map(|one| parts(&one.expr)))
            }
        }
    }

    fn count_all(&mut self, all: impl Iterator<Item = &'e IdedExpr>) -> Option<Work> {
        let mut most = Work::default();
        for one in all {
            let work = self.count(one)?;
            most.steps = most.steps.max(work.steps);
            most.size = most.size.max(work.size);
        }
        Some(most)
    }

    fn count_loop(&mut self, one: &'e ComprehensionExpr) -> Option<Work> {
        let range = self.count(&one.iter_range)?;
        let start = self.count(&one.accu_init)?;
        let outer = self.names.len();
        let elements = [Some(&one.iter_var), one.iter_var2.as_ref()];
        self.names
            .extend(elements.into_iter().flatten().map(|name| (&**name, 0)));
        self.names.push((&one.accu_var, start.size));
        let condition = self.count(&one.loop_cond)?;
        let step = self.count(&one.loop_step)?;
        self.names.truncate(outer);
        let size = start.size.max(range.size.saturating_add(step.size));
        self.names.push((&one.accu_var, size));
        let result = self.count(&one.result)?;
        self.names.truncate(outer);
        let each = condition.steps.max(step.steps);
        let steps = range.size.saturating_add(each);
        let before = range.steps.max(start.steps);
        Some(Work {
            steps: steps.max(before).max(result.steps),
            size: result.size,
        })
    }
}

fn is_small(length: Option<&IdedExpr>) -> bool {
    match length.map(|length| &length.expr) {
        Some(Expr::Literal(LiteralValue::Int(length))) => *length.inner() <= RANGE_MAX,
        _ => false,
    }
}

fn parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}
