//! Expressions of the Common Expression Language over the claims of a token, over the user that was
//! made of them, or over the request that an admission webhook is to be asked about.
//!
//! Compiled once. Numbers of claims are doubles, as upstream reads them from JSON. The evaluator counts no
//! steps and cannot be stopped, so what an expression would do with the claims at hand is bounded
//! before it begins: loops in loops over long lists are an error. Patterns are Go's, and each is
//! compiled once for an evaluation, which has a thread of its own.

use crate::authorize::expression::{self as authorize, Asking};
use cel::common::types::{CelBool, CelString};
use cel::{Context, Env, ExecutionError, Program, Value as Cel};
use coracle_api::cel::environment::Environment;
use coracle_api::cel::types::Type;
use coracle_api::cel::{self as syntax, Compiled, Work, on_deep_stack};
use coracle_api::go_regexp::Memo;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::sync::{Arc, LazyLock};

pub const CLAIMS: &str = "claims";
pub const USER: &str = "user";

/// Operators of an expression: the evaluator takes 40 KB of stack for each where nothing is optimized.
const OPERATORS_MAX: usize = 1000;
/// Steps of one evaluation: about a second.
const STEPS_MAX: u64 = 10_000_000;
/// Strings are compared and searched by as many bytes at least.
const WORD_BYTES: u64 = 8;

static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut environment = Env::stdlib();
    for extension in [
        cel::extensions::strings,
        cel::extensions::lists,
        authorize::extend,
    ] {
        environment
            .add_extension(extension)
            .expect("no function of an extension is declared twice");
    }
    // The crate's own one, which reads patterns in another syntax, is left out of it.
    cel::add_overload!(environment, fn matches: (CelString, CelString) -> Result<CelBool>,
        id = "matches")
    .and_then(|()| {
        cel::add_member_overload!(environment, fn matches: (CelString, CelString) -> Result<CelBool>)
    })
    .expect("it is declared once");
    Arc::new(environment)
});

thread_local! {
    /// The patterns of one evaluation.
    static PATTERNS: RefCell<Memo> = RefCell::default();
}

fn matches(text: &CelString<'_>, pattern: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    let matched = PATTERNS.with_borrow_mut(|all| all.matches(text.inner(), pattern.inner()));
    matched
        .map(CelBool::from)
        .map_err(|message| ExecutionError::FunctionError {
            function: "matches".to_owned(),
            message,
        })
}

/// Named functions that can be evaluated; operators all can.
const FUNCTIONS: &[&str] = &[
    "bool",
    "bytes",
    "charAt",
    "contains",
    "distinct",
    "double",
    "dyn",
    "endsWith",
    "flatten",
    "format",
    "hasValue",
    "indexOf",
    "int",
    "join",
    "lastIndexOf",
    "lists.range",
    "lowerAscii",
    "matches",
    "optional.none",
    "optional.of",
    "optional.ofNonZeroValue",
    "or",
    "orValue",
    "replace",
    "reverse",
    "size",
    "slice",
    "sort",
    "sortBy",
    "split",
    "startsWith",
    "string",
    "strings.quote",
    "substring",
    "trim",
    "type",
    "uint",
    "upperAscii",
    "value",
];

pub struct Expression {
    text: String,
    variable: &'static str,
    /// Taken when dropped alone.
    program: Option<Program>,
    compiled: Compiled,
    work: Work,
}

impl std::fmt::Debug for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Expression").field(&self.text).finish()
    }
}

/// Its tree may be deep. Where there is no thread to drop it on, it stays.
impl Drop for Expression {
    fn drop(&mut self) {
        let mut program = ManuallyDrop::new(self.program.take());
        let _ = on_deep_stack(|| drop(program.take()));
    }
}

impl Expression {
    /// `variable` is the one that it may name; a rule must say yes or no. The error is in
    /// upstream's words.
    pub fn compile(text: &str, variable: &'static str, is_rule: bool) -> Result<Self, String> {
        Self::compile_in(&environment(variable), text, variable, is_rule)
    }

    /// With what else it may name.
    pub fn compile_in(
        environment: &Environment,
        text: &str,
        variable: &'static str,
        is_rule: bool,
    ) -> Result<Self, String> {
        let failed = |why: String| format!("compilation failed: {why}");
        let compiled = syntax::compile(text, environment).map_err(failed)?;
        if is_rule && compiled.of != Type::Bool {
            return Err("must evaluate to bool".to_owned());
        }
        let operators = compiled.operators;
        if operators > OPERATORS_MAX {
            let why =
                format!("expression has too many operators: {operators}, limit {OPERATORS_MAX}");
            return Err(failed(why));
        }
        if let Some(name) = compiled.calls().find(|name| !can_evaluate(name)) {
            return Err(failed(format!("this server cannot evaluate '{name}'")));
        }
        let Some(work) = compiled.work else {
            let why = "this server evaluates 'lists.range' of small constants alone";
            return Err(failed(why.to_owned()));
        };
        if work.steps(1) > STEPS_MAX {
            let why = "this server takes too long to evaluate it, whatever it looks at";
            return Err(failed(why.to_owned()));
        }
        let program = on_deep_stack(|| ENVIRONMENT.compile(text).map_err(|why| why.to_string()));
        let program = program.map_err(|why| failed(why.to_string()))?;
        Ok(Self {
            text: text.to_owned(),
            variable,
            program: Some(program.map_err(failed)?),
            compiled,
            work,
        })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it looks at a field of a variable.
    pub fn selects(&self, variable: &str, field: &str) -> bool {
        self.compiled.selects(variable, field)
    }

    /// What `read` makes of the result.
    fn evaluate<T: Send>(
        &self,
        value: &Value,
        read: fn(&Cel) -> Option<T>,
    ) -> Result<Option<T>, String> {
        self.evaluate_all(&[(self.variable, value)], &[], Numbers::Doubles, read)
    }

    fn evaluate_all<T: Send>(
        &self,
        variables: &[(&'static str, &Value)],
        asking: &[(&'static str, Asking)],
        numbers: Numbers,
        read: fn(&Cel) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let failed = |why: String| format!("expression '{}' resulted in error: {why}", self.text);
        // Splitting makes values of characters.
        let splits = self.compiled.calls().any(|name| name == "split");
        let bytes = if splits { 1 } else { WORD_BYTES };
        let sizes = variables.iter().map(|(_, value)| size(value, bytes));
        let size = sizes.sum();
        if self.work.steps(size) > STEPS_MAX {
            let loops = if self.work.power > 1 {
                "loops in loops over "
            } else {
                ""
            };
            return Err(failed(format!(
                "{loops}{size} values and characters take too long"
            )));
        }
        let program = self.program.as_ref();
        let result = on_deep_stack(|| {
            let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
            for (name, value) in variables {
                context.add_variable_from_value(*name, to_cel(value, numbers));
            }
            for (name, asking) in asking {
                context.add_variable_as_val(*name, Box::new(asking.clone()));
            }
            let program = program.expect("it is taken when dropped alone");
            match program.execute(&context) {
                Ok(result) => Ok(read(&result)),
                Err(ExecutionError::NoSuchKey(key)) => Err(format!("no such key: {key}")),
                Err(other) => Err(other.to_string()),
            }
        });
        result
            .map_err(|why| failed(why.to_string()))?
            .map_err(failed)
    }

    /// Over several variables, whose whole numbers are such. `None` for a result of another type.
    pub fn bool_of(
        &self,
        variables: &[(&'static str, &Value)],
        asking: &[(&'static str, Asking)],
    ) -> Result<Option<bool>, String> {
        let read: fn(&Cel) -> Option<bool> = |result| match result {
            Cel::Bool(is_true) => Some(*is_true),
            _ => None,
        };
        self.evaluate_all(variables, asking, Numbers::AsWritten, read)
    }

    /// `None` for a result of another type.
    pub fn bool(&self, value: &Value) -> Result<Option<bool>, String> {
        self.evaluate(value, |result| match result {
            Cel::Bool(is_true) => Some(*is_true),
            _ => None,
        })
    }

    /// `None` for a result of another type.
    pub fn string(&self, value: &Value) -> Result<Option<String>, String> {
        self.evaluate(value, text)
    }

    /// A string or a list of them, without the empty ones; `None` for a result of another type.
    pub fn strings(&self, value: &Value) -> Result<Option<Vec<String>>, String> {
        let found = self.evaluate(value, |result| match result {
            Cel::Null => Some(Vec::new()),
            Cel::List(all) => all.iter().map(text).collect(),
            one => text(one).map(|one| vec![one]),
        })?;
        Ok(found.map(|mut all: Vec<String>| {
            all.retain(|one| !one.is_empty());
            all
        }))
    }
}

fn text(value: &Cel) -> Option<String> {
    match value {
        Cel::String(text) => Some(text.to_string()),
        _ => None,
    }
}

/// What the expression may name.
fn environment(variable: &str) -> Environment {
    if variable == CLAIMS {
        let claims = Type::map(Type::String, Type::Any);
        return Environment::default().with(CLAIMS, claims);
    }
    let name = "kubernetes.UserInfo";
    let list = || Type::list(Type::String);
    let fields = [
        ("username", Type::String),
        ("uid", Type::String),
        ("groups", list()),
        ("extra", Type::map(Type::String, list())),
    ];
    Environment::default()
        .with_struct(name, &fields)
        .with(USER, Type::of_struct(name))
}

/// How much there is to look at: values, and strings by so many bytes.
fn size(value: &Value, bytes: u64) -> u64 {
    let below: u64 = match value {
        Value::String(text) => text.len() as u64 / bytes,
        Value::Array(all) => all.iter().map(|one| size(one, bytes)).sum(),
        Value::Object(fields) => fields.values().map(|one| size(one, bytes)).sum(),
        _ => 0,
    };
    1 + below
}

fn can_evaluate(function: &str) -> bool {
    let is_operator = function.starts_with(['_', '@', '!', '-']);
    is_operator || FUNCTIONS.contains(&function) || authorize::FUNCTIONS.contains(&function)
}

/// What becomes of whole numbers.
#[derive(Clone, Copy)]
enum Numbers {
    Doubles,
    AsWritten,
}

fn to_cel(value: &Value, numbers: Numbers) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(is_true) => Cel::Bool(*is_true),
        Value::Number(number) => match (numbers, number.as_i64()) {
            (Numbers::AsWritten, Some(whole)) => Cel::Int(whole),
            _ => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::from(text.as_str()),
        Value::Array(all) => {
            let all = all.iter().map(|one| to_cel(one, numbers));
            Cel::List(Arc::new(all.collect()))
        }
        Value::Object(fields) => {
            let fields = fields.iter();
            let map: HashMap<String, Cel> = fields
                .map(|(name, value)| (name.clone(), to_cel(value, numbers)))
                .collect();
            Cel::from(map)
        }
    }
}
