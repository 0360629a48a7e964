//! Expressions of the Common Expression Language, as far as the API looks at them: whether one can
//! be read, and whether it names variables that are there.
//!
//! Never evaluates and knows no types; errors are worded as upstream's compiler words them.

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr, LiteralValue, SourceInfo};
use cel::parser::Parser;

/// Expressions nest no deeper: the parser recurses.
const DEPTH_MAX: u16 = 96;

/// Names that stand for types, and for the packages of functions.
const PREDECLARED: &[&str] = &[
    "bool",
    "bytes",
    "cel",
    "double",
    "dyn",
    "google",
    "int",
    "kubernetes",
    "list",
    "map",
    "math",
    "net",
    "null_type",
    "optional",
    "optional_type",
    "sets",
    "string",
    "strings",
    "type",
    "uint",
];

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

    /// What names no variable of `declared`, and none that the expression itself introduces.
    pub fn undeclared(&self, declared: &[&str]) -> Result<(), String> {
        let mut scope: Vec<&str> = declared.to_vec();
        let mut found = Vec::new();
        unknown(&self.root, &mut scope, &mut found);
        let texts: Vec<String> = found
            .iter()
            .map(|(id, name)| self.error(*id, name))
            .collect();
        if texts.is_empty() {
            Ok(())
        } else {
            Err(texts.join("\n"))
        }
    }

    /// Fields of a variable that `defined`, asked for the steps from it, says there are not.
    pub fn undefined(
        &self,
        variable: &str,
        defined: &dyn Fn(&[&str]) -> bool,
    ) -> Result<(), String> {
        let mut texts = Vec::new();
        visit(&self.root, &mut |expression| {
            if let Some(steps) = steps_from(expression, variable)
                && let Some((field, before)) = steps.split_last()
                && defined(before)
                && !defined(&steps)
            {
                let message = format!("undefined field '{field}'");
                texts.push(self.message(expression.id, &message));
            }
        });
        if texts.is_empty() {
            Ok(())
        } else {
            Err(texts.join("\n"))
        }
    }

    /// Whether a variable is named.
    pub fn names(&self, variable: &str) -> bool {
        let mut found = false;
        visit(&self.root, &mut |expression| {
            found |= identifier(expression) == Some(variable);
        });
        found
    }

    fn error(&self, id: u64, name: &str) -> String {
        let message = format!("undeclared reference to '{name}' (in container '')");
        self.message(id, &message)
    }

    /// A message with the place in the source that it is about.
    fn message(&self, id: u64, message: &str) -> String {
        let at = self.source.offset_for(id).map_or(0, |(start, _)| start);
        let at = usize::try_from(at).unwrap_or(0);
        let before = self.source.source.get(..at).unwrap_or("");
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().map_or(0, str::len);
        let snippet = self.source.source.lines().nth(line).unwrap_or("");
        format!(
            "ERROR: <input>:{}:{}: {message}\n | {snippet}\n | {}^",
            line + 1,
            column + 1,
            ".".repeat(column)
        )
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
}

/// Lines of source are set in by a space.
fn indented(text: &str) -> String {
    text.replace("\n| ", "\n | ")
}

/// The fields selected one after the other, when they are of a variable: `a.b.c` of `a`.
fn steps_from<'a>(expression: &'a IdedExpr, variable: &str) -> Option<Vec<&'a str>> {
    match &expression.expr {
        Expr::Ident(name) => (name == variable).then(Vec::new),
        Expr::Select(select) => {
            let mut steps = steps_from(&select.operand, variable)?;
            steps.push(&select.field);
            Some(steps)
        }
        _ => None,
    }
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

/// Gathers the identifiers that nobody declared.
fn unknown<'a>(
    expression: &'a IdedExpr,
    scope: &mut Vec<&'a str>,
    found: &mut Vec<(u64, &'a str)>,
) {
    match &expression.expr {
        Expr::Ident(name) => {
            let known = scope.contains(&name.as_str()) || PREDECLARED.contains(&name.as_str());
            // The parser's own variables begin with what no identifier does.
            if !known && !name.starts_with('@') && !name.starts_with("__") {
                found.push((expression.id, name));
            }
        }
        Expr::Select(select) => unknown(&select.operand, scope, found),
        Expr::Call(call) => {
            if let Some(target) = &call.target {
                unknown(target, scope, found);
            }
            let depth = scope.len();
            if call.func_name == "bind" && is_cel(call.target.as_deref()) {
                scope.extend(call.args.first().and_then(identifier));
            }
            for argument in &call.args {
                unknown(argument, scope, found);
            }
            scope.truncate(depth);
        }
        Expr::Comprehension(loops) => {
            unknown(&loops.iter_range, scope, found);
            unknown(&loops.accu_init, scope, found);
            let depth = scope.len();
            scope.push(&loops.iter_var);
            scope.extend(loops.iter_var2.as_deref());
            scope.push(&loops.accu_var);
            for part in [&loops.loop_cond, &loops.loop_step, &loops.result] {
                unknown(part, scope, found);
            }
            scope.truncate(depth);
        }
        Expr::List(list) => {
            for element in &list.elements {
                unknown(element, scope, found);
            }
        }
        Expr::Map(map) => entries(map.entries.iter().map(|entry| &entry.expr), scope, found),
        Expr::Struct(made) => {
            entries(made.entries.iter().map(|entry| &entry.expr), scope, found);
        }
        Expr::Literal(_) | Expr::Unspecified => {}
    }
}

fn entries<'a>(
    entries: impl Iterator<Item = &'a EntryExpr>,
    scope: &mut Vec<&'a str>,
    found: &mut Vec<(u64, &'a str)>,
) {
    for entry in entries {
        match entry {
            EntryExpr::StructField(field) => unknown(&field.value, scope, found),
            EntryExpr::MapEntry(entry) => {
                unknown(&entry.key, scope, found);
                unknown(&entry.value, scope, found);
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

fn is_cel(target: Option<&IdedExpr>) -> bool {
    target.and_then(identifier) == Some("cel")
}

#[cfg(test)]
mod tests;
