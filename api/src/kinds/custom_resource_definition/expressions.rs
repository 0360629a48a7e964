//! Rules in a schema, `x-kubernetes-validations`: their form, and that their expressions can be
//! read.

use super::costs::Costs;
use super::field_path;
use crate::cel;
use crate::cel::budget::Budget;
use crate::cel::environment::Environment;
use crate::cel::extents::Extents;
use crate::cel::types::Type;
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
/// The name of the type of `self`, which no expression can name.
const SELF: &str = "selfType@";
/// Every schema that has rules has names of its own, all below it again.
const STEPS_OF_NAME: usize = 4;
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

/// Where rules stand, as far as their expressions depend on it.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub budget: &'a Budget,
    pub costs: &'a Costs,
    /// As many values of the schema as an object may have; `None` where there is no bound.
    pub values_max: Option<u64>,
    pub is_resource: bool,
    /// Within what there is no `oldSelf`.
    pub uncorrelatable: Option<&'a Path>,
}

/// What is wrong with the expressions.
pub fn compile(rules: &[Value], schema: &Value, place: Place<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if rules.is_empty() {
        return errors;
    }
    // Nothing is built for what is not to be read.
    if let Err(why) = place.budget.take(0) {
        return vec![FieldError::internal(&path.child(FIELD), why)];
    }
    let mut environment = Environment::default().within(place.budget);
    let of_self = environment.of_schema(schema, place.is_resource, SELF);
    let extents = Extents::of_schema(schema, place.is_resource);
    let (Some(of_self), Some(extents)) = (of_self, extents) else {
        let detail = "internal error: failed to retrieve type information for \
                      x-kubernetes-validations";
        return vec![FieldError::internal(&path.child(FIELD), detail)];
    };
    if let Err(why) = place.budget.take(STEPS_OF_NAME * environment.size()) {
        return vec![FieldError::internal(&path.child(FIELD), why)];
    }
    let values_max = place.values_max.unwrap_or(extents.count_max());
    let environment = environment.sized(extents).with("self", of_self.clone());
    let with_old = environment.clone().with("oldSelf", of_self.clone());
    let with_optional = environment.with("oldSelf", Type::optional(of_self));
    for (index, rule) in rules.iter().enumerate() {
        let path = path.child(FIELD).index(index);
        let environment = if json::flag(rule, "optionalOldSelf") {
            &with_optional
        } else {
            &with_old
        };
        let wrong = |field: &str, detail: String| {
            let error = FieldError::invalid(&path.child(field), rule.clone(), detail);
            error.as_go(TYPE)
        };
        let cost = |compiled: &cel::Compiled| compiled.cost.unwrap_or(0);
        let compiled = match cel::compile(json::text(rule, "rule"), environment) {
            Ok(compiled) if compiled.of == Type::Bool => {
                let all = cost(&compiled).saturating_mul(values_max);
                let path = path.child("rule");
                errors.extend(place.costs.add(all, "estimated rule cost", &path));
                Some(compiled)
            }
            Ok(_) => {
                let why = "cel expression must evaluate to a bool";
                errors.push(wrong("rule", why.to_owned()));
                None
            }
            Err(error) => {
                errors.push(wrong("rule", format!("compilation failed: {error}")));
                None
            }
        };
        let of_message = json::text(rule, "messageExpression");
        if compiled.is_some() && !of_message.is_empty() {
            let field = "messageExpression";
            match cel::compile(of_message, environment) {
                Ok(compiled) if compiled.of == Type::String => {
                    let what = "estimated messageExpression cost";
                    let path = path.child(field);
                    errors.extend(place.costs.add(cost(&compiled), what, &path));
                }
                Ok(_) => errors.push(wrong(field, format!("{field} must evaluate to a string"))),
                Err(error) => {
                    errors.push(wrong(field, format!("{field} compilation failed: {error}")));
                }
            }
        }
        let uses = compiled.is_some_and(|one| one.names("oldSelf"));
        errors.extend(old_self(rule, uses, place.uncorrelatable, &path));
    }
    errors
}

fn old_self(rule: &Value, uses: bool, uncorrelatable: Option<&Path>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(within) = uncorrelatable.filter(|_| uses) {
        let detail = format!(
            "oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
        );
        let text = json::text(rule, "rule");
        errors.push(FieldError::invalid(&path.child("rule"), text, detail));
    }
    if let Some(optional) = json::some(rule, "optionalOldSelf").filter(|_| !uses) {
        let detail = "may not be set if oldSelf is not used in rule";
        let path = path.child("optionalOldSelf");
        errors.push(FieldError::invalid(&path, optional.clone(), detail));
    }
    errors
}

#[cfg(test)]
mod tests;
