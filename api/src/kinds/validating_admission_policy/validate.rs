//! Validation of policies that judge: rules, messages, audit annotations, the status.

use crate::field::{ErrorList, FieldError, Path};
use crate::go_value;
use crate::kinds::admission_registration::expressions::{Gives, Scope, compile};
use crate::kinds::admission_registration::policy;
use crate::kinds::checks;
use crate::object::Object;
use crate::{json, names};
use serde_json::Value;

const ANNOTATIONS_MAX: usize = 20;
const ANNOTATION_BYTES_MAX: usize = 5 * 1024;
/// Of a refusal.
const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge"];

pub fn spec(object: &Object) -> ErrorList {
    let path = Path::root("spec");
    let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
    let (mut errors, mut scope) = policy::head(spec, false, &path);
    if json::list(spec, "variables").is_empty() {
        scope = scope.without_variables();
    }
    let of_messages = scope.clone().without_authorizer();
    let validations = json::list(spec, "validations");
    let annotations = json::list(spec, "auditAnnotations");
    if validations.is_empty() && annotations.is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        for field in ["validations", "auditAnnotations"] {
            errors.push(FieldError::required(&path.child(field), detail));
        }
    }
    for (index, one) in validations.iter().enumerate() {
        let path = path.child("validations").index(index);
        errors.extend(validation(one, [&scope, &of_messages], &path));
    }
    let path = path.child("auditAnnotations");
    if annotations.len() > ANNOTATIONS_MAX {
        let detail = format!("must not have more than {ANNOTATIONS_MAX} auditAnnotations");
        let name = "io.k8s.api.admissionregistration.v1.AuditAnnotation";
        let shown = go_value::internal_list(name, annotations);
        errors.push(FieldError::invalid(&path, annotations, detail).shown_as(shown));
    }
    for (index, one) in annotations.iter().enumerate() {
        let path = path.index(index);
        errors.extend(audit_annotation(one, object.name(), &scope, &path));
        let key = json::text(one, "key");
        if annotations[..index]
            .iter()
            .any(|one| json::text(one, "key") == key)
        {
            errors.push(FieldError::duplicate(&path.child("key"), key));
        }
    }
    errors
}

/// With what its expression may name, and what that of its message may.
fn validation(validation: &Value, [scope, of_messages]: [&Scope; 2], path: &Path) -> ErrorList {
    const NOT_BLANK: &str = "must be non-empty if specified";
    let [expression, message, message_expression] =
        ["expression", "message", "messageExpression"].map(|field| json::text(validation, field));
    let mut errors = ErrorList::new();
    let of_expression = path.child("expression");
    if expression.trim().is_empty() {
        let detail = "expression is not specified";
        errors.push(FieldError::required(&of_expression, detail));
    } else {
        errors.extend(compile(expression, scope, Gives::Bool, &of_expression));
    }
    let of_message = path.child("messageExpression");
    if !message_expression.trim().is_empty() {
        errors.extend(compile(
            message_expression,
            of_messages,
            Gives::Text,
            &of_message,
        ));
    } else if !message_expression.is_empty() {
        errors.push(FieldError::invalid(
            &of_message,
            message_expression,
            NOT_BLANK,
        ));
    }
    let mut wrong = |detail: &str| {
        errors.push(FieldError::invalid(&path.child("message"), message, detail));
    };
    if !message.is_empty() && message.trim().is_empty() {
        wrong(NOT_BLANK);
    } else if message.trim().contains(['\n', '\r']) {
        wrong("must not contain line breaks");
    }
    if let Some(reason) = json::some(validation, "reason") {
        let reason = reason.as_str().unwrap_or("");
        checks::one_of(&mut errors, reason, REASONS, &path.child("reason"));
    }
    errors
}

fn audit_annotation(annotation: &Value, policy: &str, scope: &Scope, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let (key, of_key) = (json::text(annotation, "key"), path.child("key"));
    if policy.is_empty() {
        let detail = "requires metadata.name be non-empty";
        errors.push(FieldError::invalid(&of_key, key, detail));
    } else {
        let whole = format!("{policy}/{key}");
        checks::each(&mut errors, &of_key, &whole, names::qualified_name(&whole));
    }
    let path = path.child("valueExpression");
    let whole = json::text(annotation, "valueExpression");
    let text = whole.trim();
    if text.is_empty() {
        let detail = "valueExpression is not specified";
        errors.push(FieldError::required(&path, detail));
    } else if text.len() > ANNOTATION_BYTES_MAX {
        let detail = format!("must not exceed {ANNOTATION_BYTES_MAX} bytes in length");
        errors.push(FieldError::required(&path, detail));
    } else {
        let mut found = compile(text, scope, Gives::TextOrNull, &path);
        for error in &mut found {
            // Shown with the blanks around it.
            error.value = whole.into();
        }
        errors.extend(found);
    }
    errors
}

/// What a controller found out about the types in the expressions.
pub fn status(object: &Object) -> ErrorList {
    let path = Path::root("status");
    let mut errors = ErrorList::new();
    let warnings = object.list(&["status", "typeChecking", "expressionWarnings"]);
    for (index, warning) in warnings.iter().enumerate() {
        let path = path
            .child("typeChecking")
            .child("expressionWarnings")
            .index(index);
        checks::required(&mut errors, warning, "warning", &path);
        if json::text(warning, "fieldRef").trim().is_empty() {
            errors.push(FieldError::required(&path.child("fieldRef"), ""));
        }
    }
    let conditions = object.list(&["status", "conditions"]);
    errors.extend(checks::conditions(conditions, &path.child("conditions")));
    errors
}
