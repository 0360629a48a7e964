//! Expressions: that they can be read, name only what is there, and give what is asked for.

use crate::cel;
use crate::cel::budget::Budget;
use crate::cel::environment::{Environment, KEYWORDS};
use crate::cel::evaluate::{Program, Variable};
use crate::cel::types::Type;
use crate::field::{ErrorList, FieldError, Path};
use crate::{json, names};
use serde_json::Value;

const MATCH_CONDITIONS_MAX: usize = 64;
/// The struct whose fields are the variables of a policy.
const VARIABLES: &str = "kubernetes.variables";

const AUTHORIZER: [&str; 2] = ["authorizer", "authorizer.requestResource"];

/// What expressions of one policy may name. Made once for all of them.
#[derive(Clone, Debug)]
pub struct Scope(Environment);

/// What an expression must give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    Bool,
    Text,
    TextOrNull,
    Anything,
    Object,
    Patches,
}

impl Scope {
    /// What is in the objects nobody knows here.
    pub fn new(has_params: bool, budget: &Budget) -> Self {
        let mut environment = named(Environment::default().within(budget))
            .with("object", Type::Dyn)
            .with("oldObject", Type::Dyn);
        if has_params {
            environment = environment.with("params", Type::Dyn);
        }
        Self(environment)
    }

    /// What an expression may name, for whoever evaluates it.
    pub fn environment(&self) -> &Environment {
        &self.0
    }

    /// What expressions of a stored policy may name, with its variables, to be evaluated. What is
    /// wrong with one is told to whoever evaluates it.
    pub fn of_policy(variables: &[Value], params: bool) -> (Self, Vec<Variable>) {
        let mut scope = Self::new(params, &Budget::default()).with_variables();
        let mut compiled = Vec::with_capacity(variables.len());
        for variable in variables {
            let name = json::text(variable, "name").to_owned();
            let program = scope.program(json::text(variable, "expression"));
            let of = program
                .as_ref()
                .map_or(Type::Dyn, |one| known_part(&one.compiled.of));
            scope.0.add_field(VARIABLES, &name, of);
            compiled.push(Variable { name, program });
        }
        (scope, compiled)
    }

    /// Where the objects are of known types, and parameters too. Variables with what is wrong in
    /// them are of any.
    pub fn of_kinds(
        environment: Environment,
        object: &Type,
        params: Option<Type>,
        variables: &[Value],
    ) -> Self {
        let mut environment = named(environment)
            .with("object", object.clone())
            .with("oldObject", object.clone());
        if let Some(params) = params {
            environment = environment.with("params", params);
        }
        let mut scope = Self(environment).with_variables();
        for variable in variables {
            let found = cel::compile(json::text(variable, "expression"), &scope.0);
            let of = found.map_or(Type::Dyn, |one| known_part(&one.of));
            scope
                .0
                .add_field(VARIABLES, json::text(variable, "name"), of);
        }
        scope
    }

    /// What is wrong with an expression, as upstream's compiler says it.
    pub fn check(&self, text: &str) -> Result<(), String> {
        cel::compile(text, &self.0).map(drop)
    }

    /// An expression, to be evaluated. The error is in upstream's words.
    pub fn program(&self, text: &str) -> Result<Program, String> {
        Program::compile(text, &self.0).map_err(|error| format!("compilation failed: {error}"))
    }

    /// Variables of the policy itself, none so far.
    fn with_variables(self) -> Self {
        let environment = self.0.with_struct(VARIABLES, &[]);
        Self(environment.with("variables", Type::of_struct(VARIABLES)))
    }

    #[must_use]
    pub fn without_variables(self) -> Self {
        Self(self.0.without("variables"))
    }

    #[must_use]
    pub fn without_authorizer(self) -> Self {
        let without = |environment: Environment, name| environment.without(name);
        Self(AUTHORIZER.into_iter().fold(self.0, without))
    }

    #[must_use]
    pub fn with_patches(self) -> Self {
        Self(self.0.with_patches())
    }
}

/// What there is in all policies, bar the objects.
fn named(environment: Environment) -> Environment {
    let of = |name: &str| Type::of_struct(&format!("kubernetes.authorization.{name}"));
    let [authorizer, of_resource] = AUTHORIZER;
    request(namespace(environment))
        .with(authorizer, of("Authorizer"))
        .with(of_resource, of("ResourceCheck"))
}

fn texts(names: &[&'static str]) -> Vec<(&'static str, Type)> {
    names.iter().map(|name| (*name, Type::String)).collect()
}

/// `namespaceObject`, without what upstream leaves out of it.
fn namespace(environment: Environment) -> Environment {
    let of = |name: &str| Type::of_struct(&format!("kubernetes.Namespace{name}"));
    let words = || Type::map(Type::String, Type::String);
    let list = || Type::list(Type::String);
    let mut metadata = texts(&[
        "name",
        "generateName",
        "namespace",
        "UID",
        "resourceVersion",
    ]);
    metadata.extend([
        ("labels", words()),
        ("annotations", words()),
        ("finalizers", list()),
        ("creationTimestamp", Type::Timestamp),
        ("deletionTimestamp", Type::Timestamp),
        ("deletionGracePeriodSeconds", Type::Int),
        ("generation", Type::Int),
    ]);
    let mut condition = texts(&["status", "type", "message", "reason"]);
    condition.push(("lastTransitionTime", Type::Timestamp));
    let status = [
        ("conditions", Type::list(of("Condition"))),
        ("phase", Type::String),
    ];
    let whole = [
        ("metadata", of("Metadata")),
        ("spec", of("Spec")),
        ("status", of("Status")),
    ];
    environment
        .with("namespaceObject", of(""))
        .with_struct("kubernetes.Namespace", &whole)
        .with_struct("kubernetes.NamespaceMetadata", &metadata)
        .with_struct("kubernetes.NamespaceSpec", &[("finalizers", list())])
        .with_struct("kubernetes.NamespaceStatus", &status)
        .with_struct("kubernetes.NamespaceCondition", &condition)
}

/// `request`: what is asked, and by whom.
fn request(environment: Environment) -> Environment {
    let of = |name: &str| Type::of_struct(&format!("kubernetes.{name}"));
    let list = || Type::list(Type::String);
    let mut user = texts(&["username", "uid"]);
    user.extend([
        ("groups", list()),
        ("extra", Type::map(Type::String, list())),
    ]);
    let names = [
        "subResource",
        "requestSubResource",
        "name",
        "namespace",
        "operation",
    ];
    let mut request = texts(&names);
    request.extend([
        ("kind", of("GroupVersionKind")),
        ("requestKind", of("GroupVersionKind")),
        ("resource", of("GroupVersionResource")),
        ("requestResource", of("GroupVersionResource")),
        ("userInfo", of("UserInfo")),
        ("dryRun", Type::Bool),
        ("options", Type::Dyn),
    ]);
    let [kind, resource] = ["kind", "resource"].map(|one| texts(&["group", "version", one]));
    environment
        .with("request", of("AdmissionRequest"))
        .with_struct("kubernetes.AdmissionRequest", &request)
        .with_struct("kubernetes.GroupVersionKind", &kind)
        .with_struct("kubernetes.GroupVersionResource", &resource)
        .with_struct("kubernetes.UserInfo", &user)
}

impl Gives {
    /// Why a type is not the one that is asked for.
    fn problem(self, got: &str) -> Option<String> {
        let wanted = match self {
            Self::Anything => return None,
            Self::Bool => "bool",
            Self::Text => "string",
            Self::TextOrNull if got == "string" || got == "null_type" => return None,
            Self::TextOrNull => {
                let types = "[string null_type]";
                return Some(format!("must evaluate to one of {types} but got {got}"));
            }
            Self::Object => "Object",
            Self::Patches => "list(JSONPatch)",
        };
        (got != wanted).then(|| format!("must evaluate to {wanted} but got {got}"))
    }
}

/// What is wrong with an expression, at `path`.
pub fn compile(text: &str, scope: &Scope, gives: Gives, path: &Path) -> ErrorList {
    compiled(text, scope, gives, path).err().unwrap_or_default()
}

/// The type of the result, or what is wrong.
fn compiled(text: &str, scope: &Scope, gives: Gives, path: &Path) -> Result<Type, ErrorList> {
    let compiled = cel::compile(text, &scope.0);
    let of = compiled
        .map_err(|error| invalid(path, text, &format!("compilation failed: {error}")))?
        .of;
    match gives.problem(&of.to_string()) {
        Some(detail) => Err(invalid(path, text, &detail)),
        None => Ok(of),
    }
}

/// The type of a variable as others see it.
fn known_part(of: &Type) -> Type {
    match of {
        Type::List(item) => Type::list(known_part(item)),
        Type::Map(key, value) => Type::map(known_part(key), known_part(value)),
        Type::Opaque(..) | Type::Struct(_) | Type::Kind(_) | Type::Parameter(_) | Type::Error => {
            Type::Dyn
        }
        plain => plain.clone(),
    }
}

fn invalid(path: &Path, text: &str, detail: &str) -> ErrorList {
    vec![FieldError::invalid(path, text, detail)]
}

/// Conditions that narrow what a webhook or a policy is asked about.
pub fn match_conditions(
    conditions: &[Value],
    params: bool,
    budget: &Budget,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    if conditions.len() > MATCH_CONDITIONS_MAX {
        let error = FieldError::too_many(path, conditions.len(), MATCH_CONDITIONS_MAX);
        errors.push(error);
    }
    if conditions.is_empty() {
        return errors;
    }
    let scope = Scope::new(params, budget);
    let mut seen = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        let expression = json::text(condition, "expression").trim();
        let of_expression = path.child("expression");
        if expression.is_empty() {
            errors.push(FieldError::required(&of_expression, ""));
        } else {
            errors.extend(compile(expression, &scope, Gives::Bool, &of_expression));
        }
        let (name, path) = (json::text(condition, "name"), path.child("name"));
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        crate::kinds::checks::each(&mut errors, &path, name, names::qualified_name(name));
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(&path, name));
        }
        seen.push(name);
    }
    errors
}

/// What is wrong with the variables of a policy, each of which may name those before it, and what
/// other expressions may name.
pub fn variables(
    variables: &[Value],
    params: bool,
    budget: &Budget,
    path: &Path,
) -> (ErrorList, Scope) {
    let mut errors = ErrorList::new();
    let mut scope = Scope::new(params, budget).with_variables();
    for (index, variable) in variables.iter().enumerate() {
        let path = path.index(index);
        let (name, of_name) = (json::text(variable, "name"), path.child("name"));
        if name.trim().is_empty() {
            errors.push(FieldError::required(&of_name, "name is not specified"));
        } else if !is_identifier(name) {
            let detail = "must be a valid CEL identifier";
            errors.push(FieldError::invalid(&of_name, name, detail));
        }
        let (text, path) = (json::text(variable, "expression"), path.child("expression"));
        if text.trim().is_empty() {
            let detail = "expression is not specified";
            errors.push(FieldError::required(&path, detail));
            continue;
        }
        let of = match compiled(text, &scope, Gives::Anything, &path) {
            Ok(of) => known_part(&of),
            Err(found) => {
                errors.extend(found);
                Type::Dyn
            }
        };
        scope.0.add_field(VARIABLES, name, of);
    }
    (errors, scope)
}

fn is_identifier(name: &str) -> bool {
    let bytes = name.as_bytes();
    let first = bytes.first();
    first.is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        && !KEYWORDS.contains(&name)
}
