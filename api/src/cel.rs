//! Expressions of the Common Expression Language: whether one can be read, and of which type its
//! result is.
//!
//! Never evaluates; errors are worded as upstream's compiler words them. `docs/expressions.md` says
//! how the pieces fit.

mod check; // Start reading here: types of expressions.
pub mod environment; // What an expression may name.
mod functions; // What it may call.
pub mod types; // Types, and which goes where.

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr, LiteralValue, SourceInfo};
use cel::parser::Parser;
use check::Problem;
use environment::Environment;
use types::Type;

/// Expressions nest no deeper: the parser recurses.
const DEPTH_MAX: u16 = 96;

/// As upstream: more problems with one expression are not told.
const PROBLEMS_MAX: usize = 100;
/// The operator of `a.?b`.
const OPTIONAL_SELECT: &str = "_?._";

/// An expression that can be read.
#[derive(Debug)]
pub struct Expression {
    root: IdedExpr,
    source: SourceInfo,
}

impl Expression {
    /// The error text is that of upstream's compiler, lines of source included.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parser = Parser::new()
            .enable_optional_syntax(true)
            .max_recursion_depth(DEPTH_MAX);
        match parser.parse_with_source_info(text) {
            Ok((root, source)) => Ok(Self { root, source }),
            // In what is empty there is no first column.
            Err(errors) if text.is_empty() => Err(errors.to_string().replacen(":1:1:", ":1:0:", 1)),
            Err(errors) => Err(indented(&errors.to_string())),
        }
    }

    /// The type of the result, or what is wrong, each problem with its line of the source.
    pub fn check(&self, environment: &Environment) -> Result<Type, String> {
        check::check(&self.root, environment).map_err(|mut problems| {
            problems.sort_by_cached_key(|problem| self.place(problem.id));
            problems.truncate(PROBLEMS_MAX);
            let texts = problems.iter().map(|problem| self.message(problem));
            texts.collect::<Vec<_>>().join("\n")
        })
    }

    /// What is wrong where there are these variables, of which nothing more is known.
    pub fn undeclared(&self, declared: &[&str]) -> Result<(), String> {
        let none = Environment::default();
        let environment = declared
            .iter()
            .fold(none, |environment, name| environment.with(name, Type::Dyn));
        self.check(&environment).map(drop)
    }

    /// Whether a variable is named.
    pub fn names(&self, variable: &str) -> bool {
        let mut found = false;
        visit(&self.root, &mut |expression| {
            found |= identifier(expression) == Some(variable);
        });
        found
    }

    /// Whether a field of a variable is looked at: `claims.email`, `claims.?email`.
    pub fn selects(&self, variable: &str, field: &str) -> bool {
        let mut found = false;
        visit(&self.root, &mut |expression| {
            found |= match &expression.expr {
                Expr::Select(select) => {
                    select.field == field && identifier(&select.operand) == Some(variable)
                }
                Expr::Call(call) => match call.args.as_slice() {
                    [operand, named] => {
                        call.func_name == OPTIONAL_SELECT
                            && identifier(operand) == Some(variable)
                            && is_text(named, field)
                    }
                    _ => false,
                },
                _ => false,
            };
        });
        found
    }

    /// The type of the result, where it can be told without knowing any variable.
    pub fn plain_type(&self) -> Option<&'static str> {
        match &self.root.expr {
            Expr::Literal(literal) => Some(match literal {
                LiteralValue::Boolean(_) => "bool",
                LiteralValue::Bytes(_) => "bytes",
                LiteralValue::Double(_) => "double",
                LiteralValue::Int(_) => "int",
                LiteralValue::Null => "null_type",
                LiteralValue::String(_) => "string",
                LiteralValue::UInt(_) => "uint",
            }),
            _ => None,
        }
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

fn is_text(expression: &IdedExpr, text: &str) -> bool {
    matches!(&expression.expr, Expr::Literal(LiteralValue::String(own)) if own.inner() == text)
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
