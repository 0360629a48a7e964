//! Expressions: that they can be read, name only what is there, and give what is asked for.

use crate::cel::Expression;
use crate::field::{ErrorList, FieldError, Path};
use crate::{json, names};
use serde_json::Value;

const MATCH_CONDITIONS_MAX: usize = 64;
/// Words that no variable is named by.
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Which variables an expression may name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scope<'a> {
    pub params: bool,
    pub authorizer: bool,
    /// Variables of the policy itself, where it may have some.
    pub variables: Option<&'a [Value]>,
    pub patches: bool,
}

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

impl Scope<'_> {
    fn names(self) -> Vec<&'static str> {
        let mut names = vec!["object", "oldObject", "namespaceObject", "request"];
        let more = [
            (self.params, "params"),
            (self.authorizer, "authorizer"),
            (self.variables.is_some(), "variables"),
            (self.patches, "jsonpatch"),
        ];
        names.extend(
            more.iter()
                .filter(|(there, _)| *there)
                .map(|(_, name)| name),
        );
        names
    }

    /// False for a variable that the policy does not have; what is in one, nobody knows here.
    fn has_variable(self, steps: &[&str]) -> bool {
        let Some(name) = steps.first() else {
            return true;
        };
        let mut variables = self.variables.unwrap_or(&[]).iter();
        variables.any(|one| {
            let expression = json::text(one, "expression");
            json::text(one, "name") == *name && !expression.trim().is_empty()
        })
    }
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
pub fn compile(text: &str, scope: Scope<'_>, gives: Gives, path: &Path) -> ErrorList {
    let expression = match Expression::parse(text) {
        Ok(expression) => expression,
        Err(error) => return invalid(path, text, &format!("compilation failed: {error}")),
    };
    let declared = expression.undeclared(&scope.names());
    let defined = |steps: &[&str]| scope.has_variable(steps);
    if let Err(error) = declared.and_then(|()| expression.undefined("variables", &defined)) {
        return invalid(path, text, &format!("compilation failed: {error}"));
    }
    let problem = expression.plain_type().and_then(|got| gives.problem(got));
    problem.map_or_else(ErrorList::new, |detail| invalid(path, text, &detail))
}

fn invalid(path: &Path, text: &str, detail: &str) -> ErrorList {
    vec![FieldError::invalid(path, text, detail)]
}

/// Conditions that narrow what a webhook or a policy is asked about.
pub fn match_conditions(conditions: &[Value], params: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if conditions.len() > MATCH_CONDITIONS_MAX {
        let error = FieldError::too_many(path, conditions.len(), MATCH_CONDITIONS_MAX);
        errors.push(error);
    }
    let scope = Scope {
        params,
        authorizer: true,
        ..Scope::default()
    };
    let mut seen = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        let expression = json::text(condition, "expression").trim();
        let of_expression = path.child("expression");
        if expression.is_empty() {
            errors.push(FieldError::required(&of_expression, ""));
        } else {
            errors.extend(compile(expression, scope, Gives::Bool, &of_expression));
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

/// The variables of a policy, each of which may name those before it.
pub fn variables(variables: &[Value], params: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, variable) in variables.iter().enumerate() {
        let scope = Scope {
            params,
            authorizer: true,
            variables: Some(&variables[..index]),
            patches: false,
        };
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
        } else {
            errors.extend(compile(text, scope, Gives::Anything, &path));
        }
    }
    errors
}

fn is_identifier(name: &str) -> bool {
    let bytes = name.as_bytes();
    let first = bytes.first();
    first.is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        && !RESERVED.contains(&name)
}
