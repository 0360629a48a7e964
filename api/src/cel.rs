//! Expressions of the Common Expression Language: whether one can be read, of which type its result
//! is, and what it gives.
//!
//! Errors are worded as upstream's compiler words them. `docs/expressions.md` says
//! how the pieces fit.

mod bounds; // What an expression may cost to read.
pub mod budget; // What all of one object may.
mod check; // Start reading here: types of expressions.
mod cost; // What it costs at most to evaluate one, by upstream's estimate.
pub mod environment; // What an expression may name.
pub mod evaluate; // What it gives.
pub mod extents; // How large what it names may be.
mod functions; // What it may call.
mod kinds; // The types of built-in kinds.
pub mod types; // Types, and which goes where.
mod work; // How long it takes to evaluate.

use cel::IdedExpr;
use cel::common::ast::{CallExpr, EntryExpr, Expr, LiteralValue, SourceInfo};
use cel::parser::Parser;
use check::{Checked, Problem, Problems};
use environment::Environment;
use functions::Functions;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::{self, Write};
use types::Type;

pub use bounds::on_deep_stack;
pub use work::Work;

/// As upstream: more problems with one expression are not told.
const PROBLEMS_MAX: usize = 100;
/// Nor are they once they are this long together: each shows a line of source, however long.
const PROBLEMS_BYTES_MAX: usize = 64 * 1024;
/// What the parser says of brackets in brackets, within an error of its own.
const TOO_DEEP: &str = "Recursion limit of ";
/// The operator of `a.?b`.
const OPTIONAL_SELECT: &str = "_?._";

/// What is known of an expression that can be read and is right.
#[derive(Debug, Default)]
pub struct Compiled {
    /// The type of its result.
    pub of: Type,
    /// As many operators and brackets as it has at most.
    pub operators: usize,
    /// How the work of evaluating it grows with the size of its variables; `None` where it may be
    /// any.
    pub work: Option<Work>,
    /// What evaluating it costs at most, in upstream's units; `None` where nothing is known of how
    /// large its variables may be.
    pub cost: Option<u64>,
    /// The variables that it names, its own included.
    variables: BTreeSet<String>,
    /// The fields of variables that it looks at.
    selected: BTreeSet<(String, String)>,
    /// Operators and what macros leave included.
    calls: BTreeSet<String>,
}

/// Reads an expression and says what it gives, or what is wrong with it in the words of upstream's
/// compiler, lines of source included.
pub fn compile(text: &str, environment: &Environment) -> Result<Compiled, String> {
    if let Some(problem) = bounds::problem(text) {
        return Err(problem);
    }
    let spent = environment.budget().expression(text);
    spent.map_err(|why| format!("ERROR: <input>:-1:0: {why}"))?;
    let compile = || {
        let expression = Expression::parse(text)?;
        let checked = expression.check(environment)?;
        let functions = Functions::default();
        let mut seen = expression.seen(checked.of.clone(), &functions);
        let extents = environment.extents();
        seen.cost = extents.map(|of| cost::cost(&expression.root, &checked, of, &functions));
        environment.budget().add(checked.steps());
        Ok(seen)
    };
    on_deep_stack(compile).unwrap_or_else(|error| Err(format!("no thread to read it on: {error}")))
}

impl Compiled {
    /// Whether a variable is named.
    pub fn names(&self, variable: &str) -> bool {
        self.variables.contains(variable)
    }

    /// Whether a field of a variable is looked at: `claims.email`, `claims.?email`.
    pub fn selects(&self, variable: &str, field: &str) -> bool {
        let wanted = (variable.to_owned(), field.to_owned());
        self.selected.contains(&wanted)
    }

    /// The functions that are called, those of a package with its name: `sets.contains`.
    pub fn calls(&self) -> impl Iterator<Item = &str> {
        self.calls.iter().map(String::as_str)
    }
}

/// An expression that can be read. Lives and dies on a deep stack.
#[derive(Debug)]
struct Expression {
    root: IdedExpr,
    source: SourceInfo,
}

impl Expression {
    fn parse(text: &str) -> Result<Self, String> {
        let parser = Parser::new()
            .enable_optional_syntax(true)
            .max_recursion_depth(bounds::DEPTH_MAX);
        let (root, source) = parser.parse_with_source_info(text).map_err(|found| {
            if found
                .errors
                .iter()
                .any(|error| error.msg.contains(TOO_DEEP))
            {
                return bounds::too_deep();
            }
            // In what is empty there is no first column.
            let shown = |error: &dyn fmt::Display| match error.to_string() {
                shown if text.is_empty() => shown.replacen(":1:1:", ":1:0:", 1),
                shown => indented(&shown),
            };
            let errors = &found.errors[..found.errors.len().min(PROBLEMS_MAX)];
            told(errors.iter().map(|error| shown(error)), found.errors.len())
        })?;
        Ok(Self { root, source })
    }

    /// The types, or what is wrong, each problem with its line of the source.
    fn check(&self, environment: &Environment) -> Result<Checked, String> {
        check::check(&self.root, environment).map_err(|Problems { mut all, count }| {
            all.sort_by_cached_key(|problem| self.place(problem.id));
            told(all.iter().map(|problem| self.message(problem)), count)
        })
    }

    /// What the expression has in it.
    fn seen(&self, of: Type, functions: &Functions) -> Compiled {
        let mut seen = Compiled {
            of,
            operators: bounds::operators(&self.source.source),
            work: work::work(&self.root, functions),
            ..Compiled::default()
        };
        visit(&self.root, &mut |expression| match &expression.expr {
            Expr::Ident(name) => {
                seen.variables.insert(name.clone());
            }
            Expr::Select(select) => {
                let field = Some(select.field.as_str());
                seen.selected.extend(selected(&select.operand, field));
            }
            Expr::Call(call) => {
                if let (OPTIONAL_SELECT, [operand, field]) = (&*call.func_name, &call.args[..]) {
                    seen.selected.extend(selected(operand, text(field)));
                }
                seen.calls.insert(call_name(call, functions).into_owned());
            }
            _ => {}
        });
        seen
    }

    /// Line and column of a node, from zero; columns are counted in characters.
    fn place(&self, id: u64) -> (usize, usize) {
        let at = self.source.offset_for(id).map_or(0, |(start, _)| start);
        let at = usize::try_from(at).unwrap_or(0);
        let before = self.source.source.get(..at).unwrap_or("");
        let column = before.rsplit('\n').next().unwrap_or("");
        (before.matches('\n').count(), column.chars().count())
    }

    /// A message with the place in the source that it is about.
    fn message(&self, problem: &Problem) -> String {
        let (line, column) = self.place(problem.id);
        let snippet = self.source.source.lines().nth(line).unwrap_or("");
        let (line, dots) = (line + 1, ".".repeat(column));
        let (column, message) = (column + 1, &problem.message);
        format!("ERROR: <input>:{line}:{column}: {message}\n | {snippet}\n | {dots}^")
    }
}

/// As many as there is room for, and how many more there are; at least one.
fn told(messages: impl Iterator<Item = String>, count: usize) -> String {
    let mut text = String::new();
    let mut told = 0;
    for message in messages {
        if told > 0 && text.len() + message.len() > PROBLEMS_BYTES_MAX {
            break;
        }
        if told > 0 {
            text.push('\n');
        }
        text.push_str(&message);
        told += 1;
    }
    if told < count {
        let _ = write!(text, "\n{} more errors were truncated", count - told);
    }
    text
}

/// The name of a function, that of a package with its name.
fn call_name<'a>(call: &'a CallExpr, functions: &Functions) -> Cow<'a, str> {
    let package = call.target.as_deref().and_then(identifier);
    let name = package.map(|package| format!("{package}.{}", call.func_name));
    let of_package = name.filter(|name| functions.find(name).is_some());
    of_package.map_or(Cow::Borrowed(&*call.func_name), Cow::Owned)
}

/// The variable and the field of it that is looked at.
fn selected(operand: &IdedExpr, field: Option<&str>) -> Option<(String, String)> {
    Some((identifier(operand)?.to_owned(), field?.to_owned()))
}

fn text(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        Expr::Literal(LiteralValue::String(own)) => Some(own.inner()),
        _ => None,
    }
}

/// Lines of source are set in by a space.
fn indented(text: &str) -> String {
    text.replace("\n| ", "\n | ")
}

/// Calls `each` with the expression and everything in it.
fn visit(expression: &IdedExpr, each: &mut dyn FnMut(&IdedExpr)) {
    each(expression);
    match &expression.expr {
        Expr::Select(select) => visit(&select.operand, each),
        Expr::Call(call) => {
            for one in call.target.as_deref().into_iter().chain(&call.args) {
                visit(one, each);
            }
        }
        Expr::Comprehension(loops) => {
            for part in [
                &loops.iter_range,
                &loops.accu_init,
                &loops.loop_cond,
                &loops.loop_step,
                &loops.result,
            ] {
                visit(part, each);
            }
        }
        Expr::List(list) => list.elements.iter().for_each(|one| visit(one, each)),
        Expr::Map(map) => visit_entries(map.entries.iter().map(|one| &one.expr), each),
        Expr::Struct(made) => visit_entries(made.entries.iter().map(|one| &one.expr), each),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

fn visit_entries<'a>(
    entries: impl Iterator<Item = &'a EntryExpr>,
    each: &mut dyn FnMut(&IdedExpr),
) {
    for entry in entries {
        match entry {
            EntryExpr::StructField(field) => visit(&field.value, each),
            EntryExpr::MapEntry(entry) => {
                visit(&entry.key, each);
                visit(&entry.value, each);
            }
        }
    }
}

fn identifier(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        Expr::Ident(name) => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
