//! Rules in a schema, `x-kubernetes-validations`: their form, and that their expressions can be
//! read.

use super::field_path;
use crate::cel::Expression;
use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use serde_json::Value;

pub const FIELD: &str = "x-kubernetes-validations";
const TYPE: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ValidationRule";
const REASONS: &[&str] = &[
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];
const LINE_BREAKS: [char; 2] = ['\n', '\r'];

/// What is wrong with rules, their expressions aside.
pub fn form(rules: &[Value], schema: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, rule) in rules.iter().enumerate() {
        let path = path.child(FIELD).index(index);
        let text = |field: &str| json::text(rule, field);
        errors.extend(message(text("rule"), text("message"), &path));
        let expression = text("messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            let path = path.child("messageExpression");
            errors.push(FieldError::required(&path, detail));
        }
        if let Some(reason) = json::some(rule, "reason").and_then(Value::as_str)
            && !REASONS.contains(&reason)
        {
            let path = path.child("reason");
            errors.push(FieldError::not_supported(&path, reason, REASONS));
        }
        let field = text("fieldPath");
        let mut wrong = |detail: &str| {
            let path = path.child("fieldPath");
            errors.push(FieldError::invalid(&path, field, detail));
        };
        if field.is_empty() {
            continue;
        }
        if field.trim().is_empty() {
            wrong("must be non-empty if specified");
        }
        if field.contains(LINE_BREAKS) {
            wrong("must not contain line breaks");
        }
        if field_path::resolve(field, schema, true).is_err() {
            wrong("must be a valid path");
        }
    }
    errors
}

fn message(rule: &str, message: &str, path: &Path) -> Option<FieldError> {
    let of_message = path.child("message");
    let trimmed = message.trim();
    if rule.trim().is_empty() {
        let detail = "rule is not specified";
        Some(FieldError::required(&path.child("rule"), detail))
    } else if !message.is_empty() && trimmed.is_empty() {
        let detail = "must be non-empty if specified";
        Some(FieldError::invalid(&of_message, message, detail))
    } else if trimmed.contains(LINE_BREAKS) {
        let detail = "must not contain line breaks";
        Some(FieldError::invalid(&of_message, message, detail))
    } else if rule.trim().contains(LINE_BREAKS) && trimmed.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        Some(FieldError::required(&of_message, detail))
    } else {
        None
    }
}

/// What is wrong with the expressions; `uncorrelatable` says within what there is no `oldSelf`.
pub fn compile(
    rules: &[Value],
    schema: &Value,
    uncorrelatable: Option<&Path>,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, rule) in rules.iter().enumerate() {
        let path = path.child(FIELD).index(index);
        let mut wrong = |field: &str, detail: String| {
            let error = FieldError::invalid(&path.child(field), rule.clone(), detail);
            errors.push(error.as_go(TYPE));
        };
        let text = json::text(rule, "rule");
        if let Err(error) = expression(text, schema, "bool") {
            let prefix = if error.starts_with("ERROR") {
                "compilation failed: "
            } else {
                ""
            };
            let error = error.replace("must evaluate to a", "cel expression must evaluate to a");
            wrong("rule", format!("{prefix}{error}"));
        }
        let of_message = json::text(rule, "messageExpression");
        if !of_message.is_empty()
            && let Err(error) = expression(of_message, schema, "string")
        {
            let prefix = if error.starts_with("ERROR") {
                "messageExpression compilation failed: "
            } else {
                "messageExpression "
            };
            wrong("messageExpression", format!("{prefix}{error}"));
        }
        errors.extend(old_self(rule, text, uncorrelatable, &path));
    }
    errors
}

/// An error that begins with `ERROR` is of the compiler.
fn expression(text: &str, schema: &Value, gives: &str) -> Result<(), String> {
    let expression = Expression::parse(text)?;
    expression.undeclared(&["self", "oldSelf"])?;
    for variable in ["self", "oldSelf"] {
        expression.undefined(variable, &|steps| is_defined(schema, steps))?;
    }
    match expression.plain_type() {
        Some(kind) if kind != gives => Err(format!("must evaluate to a {gives}")),
        _ => Ok(()),
    }
}

/// False for a field that the schema surely does not have.
fn is_defined(schema: &Value, steps: &[&str]) -> bool {
    let mut schema = schema;
    for step in steps {
        // Names that are no identifiers are written with these.
        let is_open = json::text(schema, "type") != "object"
            || json::flag(schema, "x-kubernetes-embedded-resource")
            || step.contains("__");
        if is_open || json::has(schema, "additionalProperties") {
            return true;
        }
        match json::some(json::get(schema, "properties"), step) {
            Some(property) => schema = property,
            None => return matches!(*step, "metadata" | "kind" | "apiVersion"),
        }
    }
    true
}

fn old_self(rule: &Value, text: &str, uncorrelatable: Option<&Path>, path: &Path) -> ErrorList {
    let uses = Expression::parse(text).is_ok_and(|one| one.names("oldSelf"));
    let mut errors = ErrorList::new();
    if let Some(within) = uncorrelatable.filter(|_| uses) {
        let detail = format!(
            "oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
        );
        errors.push(FieldError::invalid(&path.child("rule"), text, detail));
    }
    if let Some(optional) = json::some(rule, "optionalOldSelf").filter(|_| !uses) {
        let detail = "may not be set if oldSelf is not used in rule";
        let path = path.child("optionalOldSelf");
        errors.push(FieldError::invalid(&path, optional.clone(), detail));
    }
    errors
}
