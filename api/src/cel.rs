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

    fn error(&self, id: u64, name: &str) -> String {
        let at = self.source.offset_for(id).map_or(0, |(start, _)| start);
        let at = usize::try_from(at).unwrap_or(0);
        let before = self.source.source.get(..at).unwrap_or("");
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().map_or(0, str::len);
        let snippet = self.source.source.lines().nth(line).unwrap_or("");
        format!(
            "ERROR: <input>:{}:{}: undeclared reference to '{name}' (in container '')\n | \
             {snippet}\n | {}^",
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
