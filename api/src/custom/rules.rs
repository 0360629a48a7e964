//! The rules of a custom resource: those of its definition, looked up each time, so that a change
//! of the schema holds from the next look on.

use super::version::{ScalePath, Version};
use super::{admit, expressions};
use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use crate::names;
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules, prepare_update_by_part};
use crate::structural::{self, Patterns, Validator};
use serde_json::{Map, Value};
use std::sync::{Arc, PoisonError, RwLock};

/// What a definition says now; nothing once it is gone.
#[derive(Debug, Default)]
pub struct Current(RwLock<Option<Arc<Version>>>);

impl Current {
    pub fn get(&self) -> Option<Arc<Version>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub fn set(&self, version: Option<Arc<Version>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = version;
    }
}

#[derive(Debug)]
pub struct Custom {
    pub(super) columns: &'static [Column],
    pub(super) deprecation: Option<&'static str>,
    pub(super) current: Arc<Current>,
    pub(super) siblings: Arc<Siblings>,
}

/// The rows of all served versions of a definition.
#[derive(Debug, Default)]
pub struct Siblings(RwLock<Vec<&'static Resource>>);

impl Siblings {
    pub fn set(&self, rows: &[&'static Resource]) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = rows.to_vec();
    }
}

/// Finalizers that are no one's in particular.
const STANDARD_FINALIZERS: [&str; 3] = ["foregroundDeletion", "kubernetes", "orphan"];

impl Custom {
    fn has_status(&self) -> bool {
        self.current.get().is_some_and(|version| version.has_status)
    }

    fn validate(&self, new: &Object, old: Option<&Object>, part: Part<'_>) -> ErrorList {
        let Some(version) = self.current.get() else {
            let detail = "the definition of this resource is gone";
            return vec![FieldError::internal(&Path::default(), detail)];
        };
        let value = new.to_value();
        let before = old.map(Object::to_value);
        let mut errors = of_schema(&version, &value, before.as_ref(), part);
        errors.extend(scale(&version, new, part));
        let nowhere = Path::default();
        if part != Part::Status {
            errors.extend(embedded(&value, &version.schema));
        }
        let twice = |value: &Value| structural::check_lists(value, &version.schema, &nowhere);
        if before.as_ref().is_none_or(|old| twice(old).is_empty()) {
            errors.extend(twice(&value));
        }
        if let Some(rules) = version.rules() {
            let schema = &version.schema;
            let told = expressions::check(rules, schema, &value, before.as_ref(), &errors);
            errors.extend(told);
        }
        errors
    }
}

/// A write of the status is held against the schema of the status alone.
fn of_schema(version: &Version, value: &Value, old: Option<&Value>, part: Part<'_>) -> ErrorList {
    let patterns = Patterns::known(&version.patterns);
    if part == Part::Status {
        let schema = json::at(&version.schema, &["properties", "status"]);
        let Some(status) = value.get("status").filter(|_| schema.is_object()) else {
            return ErrorList::new();
        };
        let validator = Validator::new(schema, &patterns);
        let old = old.map_or(&json::NULL, |old| json::get(old, "status"));
        return validator.validate_update(status, old, &Path::root("status"));
    }
    let validator = Validator::new(&version.schema, &patterns);
    match old {
        Some(old) => validator.validate_update(value, old, &Path::default()),
        None => validator.validate(value, &Path::default()),
    }
}

/// Of resources within; the outer one's metadata is looked at elsewhere.
fn embedded(value: &Value, schema: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        let property = json::get(json::get(schema, "properties"), name);
        errors.extend(structural::check_resources(
            value,
            property,
            false,
            &Path::root(name),
        ));
    }
    errors
}

fn scale(version: &Version, object: &Object, part: Part<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(paths) = &version.scale else {
        return errors;
    };
    let mut count = |path: &ScalePath| {
        let at = Path::root(&path.text);
        let detail = match path.get(object) {
            None => return,
            Some(value) => match value.as_i64() {
                None => format!(
                    "{} accessor error: {value} is of the type {}, expected int64",
                    path.text,
                    go_type(value)
                ),
                Some(count) if count < 0 => "should be a non-negative integer".to_owned(),
                Some(count) if count > i64::from(i32::MAX) => {
                    format!("should be less than or equal to {}", i32::MAX)
                }
                Some(_) => return,
            },
        };
        let shown = path.get(object).and_then(Value::as_i64).unwrap_or(0);
        errors.push(FieldError::invalid(&at, shown, detail));
    };
    if part != Part::Status {
        count(&paths.spec_replicas);
    }
    count(&paths.status_replicas);
    if let Some(path) = &paths.selector
        && let Some(value) = path.get(object).filter(|value| !value.is_string())
    {
        let detail = format!(
            "{} accessor error: {value} is of the type {}, expected string",
            path.text,
            go_type(value)
        );
        errors.push(FieldError::invalid(&Path::root(&path.text), "", detail));
    }
    errors
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// What is wanted of an object, as generations count it.
fn bar_metadata(object: &Object) -> Map<String, Value> {
    let mut root = object.root().clone();
    root.remove("metadata");
    root
}

impl Rules for Custom {
    fn custom(&self) -> Option<Arc<Version>> {
        self.current.get()
    }

    fn siblings(&self) -> Vec<&'static Resource> {
        self.siblings
            .0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn default(&self, object: &mut Object) {
        if let Some(version) = self.current.get() {
            admit::fill_defaults(object, &version.schema);
        }
    }

    fn prepare_create(&self, object: &mut Object) {
        if self.has_status() {
            object.remove(&["status"]);
        }
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        if part == Part::Status || self.has_status() {
            prepare_update_by_part(new, old, part);
        }
    }

    fn counts_generations(&self) -> bool {
        true
    }

    fn raises_generation(&self, new: &Object, old: &Object) -> bool {
        bar_metadata(new) != bar_metadata(old)
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        self.validate(object, None, Part::Main)
    }

    fn validate_update(&self, new: &Object, old: &Object, part: Part<'_>) -> ErrorList {
        self.validate(new, Some(old), part)
    }

    fn is_slow_to_validate(&self) -> bool {
        true
    }

    fn deprecation(&self) -> Option<&'static str> {
        self.deprecation
    }

    fn unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self) -> &'static [Column] {
        self.columns
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let mut cells = vec![object.name().into()];
        if let Some(version) = self.current.get() {
            cells.extend(version.cells.iter().map(|path| path.cell(object, now)));
        }
        // A change of the definition in between leaves no row without its cells.
        cells.resize(self.columns.len(), Value::Null);
        cells
    }

    fn to_stored(&self, object: &mut Object) {
        if let Some(version) = self.current.get() {
            object.set(&["apiVersion"], version.storage_version.as_str().into());
        }
    }

    fn from_stored(&self, object: &mut Object) {
        if let Some(version) = self.current.get() {
            object.set(&["apiVersion"], version.api_version.as_str().into());
            admit::from_stored(object, &version);
        }
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        finalizers(object, None)
    }

    fn warnings_on_update(&self, new: &Object, old: &Object) -> Vec<String> {
        finalizers(new, Some(old))
    }
}

/// Of names of finalizers that others may use too.
fn finalizers(object: &Object, old: Option<&Object>) -> Vec<String> {
    let is_old = |name: &str| old.is_some_and(|old| old.finalizers().any(|own| own == name));
    let mut added: Vec<&str> = object.finalizers().filter(|name| !is_old(name)).collect();
    added.sort_unstable();
    added.dedup();
    let mut warnings = Vec::new();
    for name in added {
        let mut warn = |why: &str| {
            warnings.push(format!("metadata.finalizers: {name:?}: {why}"));
        };
        for why in names::qualified_name(name) {
            warn(&why);
        }
        if name.contains('/') || STANDARD_FINALIZERS.contains(&name) {
            continue;
        }
        let including = if name.contains('.') {
            "including a path (/) "
        } else {
            ""
        };
        warn(&format!(
            "prefer a domain-qualified finalizer name {including}to avoid accidental conflicts \
             with other finalizer writers"
        ));
    }
    warnings
}
