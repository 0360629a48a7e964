//! Expressions of the Common Expression Language over the claims of a token, or over the user that
//! was made of them.
//!
//! Compiled once. Numbers are doubles, as upstream reads them from JSON.

use cel::{Context, Env, ExecutionError, Program, Value as Cel};
use coracle_api::cel as syntax;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut environment = Env::stdlib();
    environment
        .add_extension(cel::extensions::strings)
        .expect("the functions of strings are not declared twice");
    Arc::new(environment)
});

pub struct Expression {
    text: String,
    variable: &'static str,
    program: Program,
    syntax: syntax::Expression,
}

impl std::fmt::Debug for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Expression").field(&self.text).finish()
    }
}

impl Expression {
    /// `variable` is the one that it may name; a rule must say yes or no. The error is in
    /// upstream's words.
    pub fn compile(text: &str, variable: &'static str, is_rule: bool) -> Result<Self, String> {
        let failed = |why: String| format!("compilation failed: {why}");
        let syntax = syntax::Expression::parse(text).map_err(failed)?;
        syntax.undeclared(&[variable]).map_err(failed)?;
        if is_rule && syntax.plain_type().is_some_and(|kind| kind != "bool") {
            return Err("must evaluate to bool".to_owned());
        }
        let program = ENVIRONMENT.compile(text);
        Ok(Self {
            text: text.to_owned(),
            variable,
            program: program.map_err(|error| failed(error.to_string()))?,
            syntax,
        })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it looks at a field of a variable.
    pub fn selects(&self, variable: &str, field: &str) -> bool {
        self.syntax.selects(variable, field)
    }

    fn evaluate(&self, value: &Value) -> Result<Cel, String> {
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        context.add_variable_from_value(self.variable, to_cel(value));
        let result = self.program.execute(&context);
        result.map_err(|error| {
            let why = match error {
                ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
                other => other.to_string(),
            };
            format!("expression '{}' resulted in error: {why}", self.text)
        })
    }

    /// `None` for a result of another type.
    pub fn bool(&self, value: &Value) -> Result<Option<bool>, String> {
        Ok(match self.evaluate(value)? {
            Cel::Bool(is_true) => Some(is_true),
            _ => None,
        })
    }

    /// `None` for a result of another type.
    pub fn string(&self, value: &Value) -> Result<Option<String>, String> {
        Ok(match self.evaluate(value)? {
            Cel::String(text) => Some(text.to_string()),
            _ => None,
        })
    }

    /// A string or a list of them, without the empty ones; `None` for a result of another type.
    pub fn strings(&self, value: &Value) -> Result<Option<Vec<String>>, String> {
        let text = |one: &Cel| match one {
            Cel::String(text) => Some(text.to_string()),
            _ => None,
        };
        let found = match self.evaluate(value)? {
            Cel::Null => Some(Vec::new()),
            Cel::List(all) => all.iter().map(text).collect(),
            one => text(&one).map(|one| vec![one]),
        };
        Ok(found.map(|mut all: Vec<String>| {
            all.retain(|one| !one.is_empty());
            all
        }))
    }
}

fn to_cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(is_true) => Cel::Bool(*is_true),
        Value::Number(number) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => Cel::from(text.as_str()),
        Value::Array(all) => Cel::List(Arc::new(all.iter().map(to_cel).collect())),
        Value::Object(fields) => {
            let fields = fields.iter();
            let map: HashMap<String, Cel> = fields
                .map(|(name, value)| (name.clone(), to_cel(value)))
                .collect();
            Cel::from(map)
        }
    }
}
