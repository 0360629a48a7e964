//! Rules of a schema (`x-kubernetes-validations`), evaluated over an object.
//!
//! As upstream: rules that name `oldSelf` run where there is an old value, others on every value; a
//! rule that fails over what did not change is not told. All rules of an object share one budget.

mod tree; // Which rules stand where, compiled.
mod values; // What expressions see of an object.

pub use tree::Tree;

use crate::cel::evaluate::{
    COST_OF_ALL_MAX, Evaluation, Fault, Given, Program, Val, on_deep_stack,
};
use crate::field::{ErrorList, FieldError, FieldErrorKind, Path};
use crate::json;
use crate::structural::OldItems;
use serde_json::Value;
use tree::Rule;

/// A message that an expression makes is no longer, as upstream.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;
const SPENT: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";
const NOT_CHECKED: &str = "some validation rules were not checked because the object was invalid; \
                           correct the existing errors to complete validation";

/// What the rules say of an object; `found` is what is wrong with it otherwise.
pub fn check(
    tree: &Tree,
    schema: &Value,
    value: &Value,
    old: Option<&Value>,
    found: &[FieldError],
) -> ErrorList {
    let stops = |error: &FieldError| {
        matches!(
            error.kind,
            FieldErrorKind::NotSupported
                | FieldErrorKind::Required
                | FieldErrorKind::TooLong
                | FieldErrorKind::TooMany
                | FieldErrorKind::TypeInvalid
        )
    };
    if found.iter().any(stops) {
        return vec![FieldError::invalid(
            &Path::default(),
            Value::Null,
            NOT_CHECKED,
        )];
    }
    let run = || {
        let mut check = Check {
            errors: ErrorList::new(),
            left: COST_OF_ALL_MAX,
        };
        let place = Place {
            schema,
            value,
            old,
            known: Known::root(value, old),
        };
        let _ = check.all(tree, place, &Path::default());
        check.errors
    };
    if !tree.is_deep() {
        return run();
    }
    on_deep_stack(run).unwrap_or_else(|error| {
        let detail = format!("no thread to evaluate the rules on: {error}");
        vec![FieldError::internal(&Path::default(), detail)]
    })
}

/// No further rule is run.
struct Ended;

struct Check {
    errors: ErrorList,
    /// Of what all rules may cost.
    left: u64,
}

/// A value with what was there before.
#[derive(Clone, Copy)]
struct Place<'v> {
    schema: &'v Value,
    value: &'v Value,
    /// What `oldSelf` is.
    old: Option<&'v Value>,
    known: Known<'v>,
}

/// What a value is compared to, to tell whether it changed.
#[derive(Clone, Copy)]
struct Known<'v> {
    current: Option<(&'v Value, &'v Value)>,
    /// The nearest value around it that can be compared.
    nearest: Option<(&'v Value, &'v Value)>,
    is_root: bool,
}

impl<'v> Known<'v> {
    fn root(value: &'v Value, old: Option<&'v Value>) -> Self {
        Self {
            current: old.map(|old| (value, old)),
            nearest: None,
            is_root: true,
        }
    }

    fn is_unchanged(self) -> bool {
        let compared = self.current.or(self.nearest);
        compared.is_some_and(|(new, old)| new == old)
    }

    fn inside(self, inner: Option<(&'v Value, &'v Value)>) -> Self {
        let Some(current) = self.current else {
            return Self {
                is_root: false,
                ..self
            };
        };
        Self {
            current: inner,
            nearest: Some(current),
            is_root: false,
        }
    }

    fn field(self, name: &str, value: &'v Value) -> Self {
        if self.is_root && matches!(name, "apiVersion" | "kind") {
            return Self {
                current: None,
                nearest: None,
                is_root: false,
            };
        }
        let old = self.current.and_then(|(_, old)| old.get(name));
        self.inside(old.map(|old| (value, old)))
    }

    fn item(self, value: &'v Value, old: Option<&'v Value>) -> Self {
        self.inside(old.map(|old| (value, old)))
    }
}

impl Check {
    fn all(&mut self, tree: &Tree, place: Place<'_>, path: &Path) -> Result<(), Ended> {
        if place.value.is_null() {
            return Ok(());
        }
        self.rules(tree, place, path)?;
        for one in &tree.all_of {
            let known = Known {
                current: None,
                ..place.known
            };
            self.all(one, Place { known, ..place }, path)?;
        }
        match place.value {
            Value::Object(_) => self.fields(tree, place, path),
            Value::Array(items) => self.items(tree, place, items, path),
            _ => Ok(()),
        }
    }

    fn fields(&mut self, tree: &Tree, place: Place<'_>, path: &Path) -> Result<(), Ended> {
        let properties = json::get(place.schema, "properties");
        for (name, value) in place.value.as_object().into_iter().flatten() {
            let (inner, schema, path) = match (tree.properties.get(name), &tree.additional) {
                (Some(inner), _) => (inner, json::get(properties, name), path.child(name)),
                (None, Some(inner)) if properties.get(name).is_none() => {
                    let schema = json::get(place.schema, "additionalProperties");
                    (&**inner, schema, path.key(name))
                }
                _ => continue,
            };
            let place = Place {
                schema,
                value,
                // Null is no value: what was null has nothing to be compared with.
                old: place
                    .old
                    .and_then(|old| old.get(name))
                    .filter(|old| !old.is_null()),
                known: place.known.field(name, value),
            };
            self.all(inner, place, &path)?;
        }
        Ok(())
    }

    fn items(
        &mut self,
        tree: &Tree,
        place: Place<'_>,
        items: &[Value],
        path: &Path,
    ) -> Result<(), Ended> {
        let Some(inner) = &tree.items else {
            return Ok(());
        };
        let schema = json::get(place.schema, "items");
        let before = OldItems::of(place.schema, place.old);
        let current = place.known.current.map(|(_, old)| old);
        let current = OldItems::of(place.schema, current);
        for (index, value) in items.iter().enumerate() {
            let known_old = current.as_ref().and_then(|current| current.same(value));
            let old = before.as_ref().and_then(|before| before.same(value));
            let place = Place {
                schema,
                value,
                old: old.filter(|old| !old.is_null()),
                known: place.known.item(value, known_old),
            };
            self.all(inner, place, &path.index(index))?;
        }
        Ok(())
    }

    fn rules(&mut self, tree: &Tree, place: Place<'_>, path: &Path) -> Result<(), Ended> {
        let of = json::text(place.schema, "type");
        if let Some(fault) = &tree.fault {
            let detail = format!("rule compiler initialization error: {fault}");
            self.errors.push(FieldError::invalid(path, of, detail));
            return Ok(());
        }
        for rule in &tree.rules {
            if rule.uses_old && place.old.is_none() && !rule.old_is_optional {
                continue;
            }
            self.rule(rule, tree.is_resource, place, path)?;
        }
        Ok(())
    }

    fn rule(
        &mut self,
        rule: &Rule,
        is_resource: bool,
        place: Place<'_>,
        path: &Path,
    ) -> Result<(), Ended> {
        let of = json::text(place.schema, "type");
        let program = match &rule.program {
            Ok(program) => program,
            Err(fault) => {
                let detail = format!("rule compile error: {fault}");
                self.errors.push(FieldError::invalid(path, of, detail));
                return Ok(());
            }
        };
        let value = |one| values::of(one, place.schema, is_resource);
        let mut names = vec![("self", value(place.value))];
        if rule.uses_old || rule.message_uses_old() {
            let old = place.old.map(value);
            if rule.old_is_optional {
                names.push(("oldSelf", old.map_or(Val::Optional(None), Val::some)));
            } else {
                names.extend(old.map(|old| ("oldSelf", old)));
            }
        }
        let given = Given {
            names,
            ..Given::default()
        };
        let mut evaluation = Evaluation::new(given, self.left);
        let result = evaluation.evaluate(program);
        self.left = evaluation.left();
        match result {
            Ok(Val::Bool(true)) => return Ok(()),
            Ok(_) => {}
            Err(fault) => return self.failed(rule, &fault, path, of),
        }
        let path = match &rule.field_path {
            Some(inner) => path.child(inner),
            None => path.clone(),
        };
        let detail = match &rule.message_program {
            Some(program) => match message(&mut evaluation, program) {
                Ok(made) => made,
                Err(fault) => {
                    self.told(rule, place, FieldError::invalid(&path, of, fault));
                    return Err(Ended);
                }
            },
            None => None,
        };
        self.left = evaluation.left();
        let detail = detail.unwrap_or_else(|| rule.message_or_default());
        let error = reasoned(rule, place.value, &path, detail);
        self.told(rule, place, error);
        Ok(())
    }

    /// What is wrong with a value that did not change was so before.
    fn told(&mut self, rule: &Rule, place: Place<'_>, error: FieldError) {
        if rule.uses_old || !place.known.is_unchanged() {
            self.errors.push(error);
        }
    }

    fn failed(&mut self, rule: &Rule, fault: &Fault, path: &Path, of: &str) -> Result<(), Ended> {
        let shown = rule.shown();
        let (detail, ends) = match fault {
            Fault::Spent => (SPENT.to_owned(), true),
            Fault::Limit => (
                format!(
                    "'{fault}': no further validation rules will be run due to call cost exceeds \
                     limit for rule: {shown}"
                ),
                true,
            ),
            Fault::Error(why) if why.starts_with("no such overload") => (
                format!(
                    "'{why}': call arguments did not match a supported operator, function or \
                     macro signature for rule: {shown}"
                ),
                false,
            ),
            Fault::Error(why) => (format!("{why} evaluating rule: {shown}"), false),
        };
        self.errors.push(FieldError::invalid(path, of, detail));
        if ends { Err(Ended) } else { Ok(()) }
    }
}

/// The message that an expression makes; `None` where it makes none that can be told. The error
/// ends all rules.
fn message<'a>(
    evaluation: &mut Evaluation<'a>,
    program: &'a Program,
) -> Result<Option<String>, String> {
    match evaluation.evaluate(program) {
        Ok(value) => {
            let text = value.text().unwrap_or("").trim();
            let is_good =
                !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n');
            Ok(is_good.then(|| text.to_owned()))
        }
        Err(Fault::Spent) => Err(
            "messageExpression evaluation failed due to running out of cost \
                                  budget, no further validation rules will be run"
                .to_owned(),
        ),
        Err(Fault::Limit) => Err(
            "no further validation rules will be run due to call cost exceeds \
                                  limit for messageExpression"
                .to_owned(),
        ),
        Err(Fault::Error(_)) => Ok(None),
    }
}

fn reasoned(rule: &Rule, value: &Value, path: &Path, detail: String) -> FieldError {
    match rule.reason.as_str() {
        "FieldValueForbidden" => FieldError::forbidden(path, detail),
        "FieldValueRequired" => FieldError::required(path, detail),
        "FieldValueDuplicate" => FieldError::duplicate(path, value.clone()).with_detail(detail),
        _ if value.is_object() || value.is_array() => FieldError::invalid_unshown(path, detail),
        _ => FieldError::invalid(path, value.clone(), detail),
    }
}

#[cfg(test)]
mod tests;
