//! Values and the structural schemas of custom resources: whether a value is as its schema says,
//! and what of it the schema does not know.
//!
//! A schema is the JSON document of a CustomResourceDefinition. Knows no definition and no request:
//! the definitions check their defaults with it, and whoever serves custom resources their objects.
//! Errors are worded as upstream's validator (`kube-openapi`) words them. Whether the schema itself
//! may be said is not looked at here; what is no structural schema accepts more.

mod default; // What is filled in.
mod format; // Strings of a known format.
mod junctor; // `anyOf` and its like.
mod list_type; // Sets and maps that are lists.
mod number; // Numbers and their bounds.
mod place; // Where in a value.
mod prune; // What a schema does not know.
mod resource; // `apiVersion`, `kind` and `metadata` of a resource within a resource.
mod text; // Strings and their patterns.

pub use default::{drop_nulls, fill as fill_defaults};
pub use format::{fits as fits_format, is_known as is_known_format};
pub use list_type::check as check_lists;
pub use place::{Place, Step};
pub use prune::{prune, pruned};
pub use resource::check as check_resources;
pub use text::{KnownPatterns, Patterns};

use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use serde_json::Value;
use std::collections::HashMap;

/// Checks values against one schema. Patterns are compiled when first needed, and kept.
#[derive(Debug)]
pub struct Validator<'p, 's> {
    schema: &'s Value,
    patterns: &'p Patterns<'s>,
}

/// What was found, and how much of a schema a value fits: of alternatives of which none fits, the
/// one that fits best is told of.
#[derive(Debug, Default)]
struct Found {
    faults: Vec<Fault>,
    matches: usize,
}

/// One thing wrong, at a path within the value.
#[derive(Clone, Debug, PartialEq)]
struct Fault {
    /// Empty for the value itself.
    at: String,
    what: What,
    message: String,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    Required,
    Unsupported {
        value: Value,
        supported: Vec<String>,
    },
    TooLong {
        max: i64,
    },
    TooMany {
        actual: usize,
        max: i64,
    },
    Type(Value),
    Invalid(Value),
    /// Of the whole, and without a path.
    Composite,
}

impl<'p, 's> Validator<'p, 's> {
    pub fn new(schema: &'s Value, patterns: &'p Patterns<'s>) -> Self {
        Self { schema, patterns }
    }

    /// What is wrong with a value, whose path is `path`.
    pub fn validate(&self, value: &Value, path: &Path) -> ErrorList {
        let found = self.check(self.schema, value, "");
        found
            .faults
            .into_iter()
            .map(|fault| fault.error(path))
            .collect()
    }

    /// [`Self::validate`] of an update: what is wrong with a part that is as it was before stays
    /// unsaid, as long as it can be told which part that was.
    pub fn validate_update(&self, value: &Value, old: &Value, path: &Path) -> ErrorList {
        let found = self.part(self.schema, value, Some(old), "");
        let faults = found.faults.into_iter();
        faults.map(|fault| fault.error(path)).collect()
    }

    fn check(&self, schema: &'s Value, value: &Value, at: &str) -> Found {
        self.check_with(schema, value, None, at)
    }

    /// A part of a value, with what was there before where that is known.
    fn part(&self, schema: &'s Value, value: &Value, old: Option<&Value>, at: &str) -> Found {
        let mut found = self.check_with(schema, value, old, at);
        if !found.is_valid() && old == Some(value) {
            found.faults.clear();
        }
        found
    }

    fn check_with(&self, schema: &'s Value, value: &Value, old: Option<&Value>, at: &str) -> Found {
        let mut found = Found::default();
        if value.is_null() {
            found.merge(own_type(schema, value, at));
            found.merge(enumeration(schema, value, at));
            return found;
        }
        if !types(schema).is_empty() || !json::text(schema, "format").is_empty() {
            found.merge(own_type(schema, value, at));
            found.matches += 1;
        }
        found.merge(junctor::check(self, schema, value, at));
        found.matches += 1;
        match value {
            Value::String(text) => {
                found.merge(text::check(schema, text, at, self.patterns));
                found.matches += 1;
                if format::is_known(json::text(schema, "format")) {
                    found.merge(format::check(schema, text, at));
                    found.matches += 1;
                }
            }
            Value::Number(number) => {
                found.merge(number::check(schema, number, at));
                found.matches += 1;
            }
            Value::Array(items) => {
                found.merge(self.list(schema, items, old, at));
                found.matches += 1;
            }
            _ => {}
        }
        found.merge(enumeration(schema, value, at));
        found.matches += 1;
        if let Value::Object(_) = value {
            found.merge(self.object(schema, value, old, at));
            found.matches += 1;
        }
        found.matches += 1;
        found
    }

    fn list(&self, schema: &'s Value, items: &[Value], old: Option<&Value>, at: &str) -> Found {
        let mut found = Found::default();
        if let Some(of_item) = json::some(schema, "items").filter(|items| items.is_object()) {
            let before = OldItems::of(schema, old);
            for (index, item) in items.iter().enumerate() {
                let old = before.as_ref().and_then(|before| before.same(item));
                found.merge(self.part(of_item, item, old, &format!("{at}[{index}]")));
            }
        }
        let size = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(min) = json::int(schema, "minItems").filter(|min| size < *min) {
            let message = format!("should have at least {min} items");
            found.add(Fault::invalid(at, size, message));
        }
        if let Some(max) = json::int(schema, "maxItems").filter(|max| size > *max) {
            let what = What::TooMany {
                actual: items.len(),
                max,
            };
            let message = format!("should have at most {max} items");
            found.add(Fault::new(at, what, message));
        }
        let is_double = |(index, item): (usize, &Value)| items[..index].contains(item);
        if json::flag(schema, "uniqueItems") && items.iter().enumerate().any(is_double) {
            found.add(Fault::invalid(at, "", "shouldn't contain duplicates"));
        }
        found.matches += 1;
        found
    }

    fn object(&self, schema: &'s Value, value: &Value, old: Option<&Value>, at: &str) -> Found {
        let mut found = Found::default();
        let Some(fields) = value.as_object() else {
            return found;
        };
        let size = i64::try_from(fields.len()).unwrap_or(i64::MAX);
        if let Some(min) = json::int(schema, "minProperties").filter(|min| size < *min) {
            let message = format!("should have at least {min} properties");
            found.add(Fault::invalid(at, size, message));
        }
        if let Some(max) = json::int(schema, "maxProperties").filter(|max| size > *max) {
            let what = What::TooMany {
                actual: fields.len(),
                max,
            };
            let message = format!("should have at most {max} properties");
            found.add(Fault::new(at, what, message));
        }
        let properties = json::get(schema, "properties");
        let additional = json::get(schema, "additionalProperties");
        for (name, value) in fields
            .iter()
            .filter(|(name, _)| properties.get(name).is_none())
        {
            if *additional == false {
                let message = format!("{at}.{name} in body is a forbidden property");
                let what = What::Invalid(name.as_str().into());
                let at = at.to_owned();
                found.add(Fault { at, what, message });
            } else if additional.is_object() {
                let old = old.and_then(|old| old.get(name));
                found.merge(self.part(additional, value, old, &format!("{at}.{name}")));
            }
        }
        for (name, property) in json::entries(schema, "properties") {
            if let Some(value) = fields.get(name) {
                let old = old.and_then(|old| old.get(name));
                found.merge(self.part(property, value, old, &child(at, name)));
            }
        }
        for name in json::list(schema, "required")
            .iter()
            .filter_map(Value::as_str)
        {
            if !fields.contains_key(name) {
                let at = format!("{at}.{name}");
                found.add(Fault::new(&at, What::Required, "is required"));
            }
        }
        found
    }
}

/// The items of a list as it was, where they are told apart by keys.
#[derive(Debug)]
pub struct OldItems<'a> {
    keys: Vec<&'a str>,
    by_keys: HashMap<String, &'a Value>,
}

impl<'a> OldItems<'a> {
    pub fn of(schema: &'a Value, old: Option<&'a Value>) -> Option<Self> {
        if json::text(schema, "x-kubernetes-list-type") != "map" {
            return None;
        }
        let keys = json::list(schema, "x-kubernetes-list-map-keys").iter();
        let mut items = Self {
            keys: keys.filter_map(Value::as_str).collect(),
            by_keys: HashMap::new(),
        };
        for item in old?.as_array()? {
            items.by_keys.entry(items.identity(item)).or_insert(item);
        }
        Some(items)
    }

    /// What an item was before.
    pub fn same(&self, item: &Value) -> Option<&'a Value> {
        self.by_keys.get(&self.identity(item)).copied()
    }

    fn identity(&self, item: &Value) -> String {
        let keys = self.keys.iter();
        let of_key = |key: &&str| item.get(*key).map_or_else(String::new, Value::to_string);
        keys.map(of_key).collect::<Vec<_>>().join(",")
    }
}

/// Fields of the value itself have no dot before them.
fn child(at: &str, name: &str) -> String {
    if at.is_empty() {
        name.to_owned()
    } else {
        format!("{at}.{name}")
    }
}

/// The types that a value may have; none where nothing is said.
fn types(schema: &Value) -> Vec<&str> {
    if json::flag(schema, "x-kubernetes-int-or-string") {
        return vec!["integer", "string"];
    }
    let one = json::text(schema, "type");
    [one].into_iter().filter(|one| !one.is_empty()).collect()
}

/// The type and the format of a value, as Go has them.
fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_i64() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

fn own_type(schema: &Value, value: &Value, at: &str) -> Found {
    let wanted = types(schema);
    let (kind, format) = type_of(value);
    let names = wanted.join(",");
    if value.is_null() {
        return if wanted.is_empty() || json::flag(schema, "nullable") {
            Found::matching()
        } else {
            Found::of(Fault::of_type(at, &names, kind))
        };
    }
    let is_whole = kind == "number" && value.as_f64().is_some_and(number::is_integer);
    let fits = wanted.contains(&kind)
        || is_whole && wanted.contains(&"integer")
        || kind == "integer" && wanted.contains(&"number");
    let of_format = json::text(schema, "format");
    let is_plain = matches!(value, Value::String(_) | Value::Array(_));
    if !is_plain && !of_format.is_empty() && !fits && format != of_format {
        return Found::of(Fault::of_type(at, of_format, format));
    }
    let is_numeric = wanted
        .iter()
        .any(|one| matches!(*one, "number" | "integer"));
    if fits || !is_numeric && !of_format.is_empty() && is_plain {
        Found::matching()
    } else {
        Found::of(Fault::of_type(at, &names, kind))
    }
}

fn enumeration(schema: &Value, value: &Value, at: &str) -> Found {
    let allowed = json::list(schema, "enum");
    let is_same = |one: &Value| crate::apply::value::equal(one, value);
    if allowed.is_empty() || allowed.iter().any(is_same) {
        return Found::default();
    }
    let supported = allowed.iter().map(|one| match one {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    let what = What::Unsupported {
        value: value.clone(),
        supported: supported.collect(),
    };
    Found::of(Fault::new(at, what, "should be one of the values"))
}

impl Found {
    fn matching() -> Self {
        Self {
            matches: 1,
            ..Self::default()
        }
    }

    fn of(fault: Fault) -> Self {
        Self {
            faults: vec![fault],
            matches: 0,
        }
    }

    fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }

    /// The same is not said twice.
    fn add(&mut self, fault: Fault) {
        if !self
            .faults
            .iter()
            .any(|known| known.message == fault.message)
        {
            self.faults.push(fault);
        }
    }

    fn merge(&mut self, other: Self) {
        self.matches += other.matches;
        for fault in other.faults {
            self.add(fault);
        }
    }
}

impl Fault {
    fn new(at: &str, what: What, message: impl AsRef<str>) -> Self {
        Self {
            at: at.to_owned(),
            what,
            message: format!("{at} in body {}", message.as_ref()),
        }
    }

    fn invalid(at: &str, value: impl Into<Value>, message: impl AsRef<str>) -> Self {
        Self::new(at, What::Invalid(value.into()), message)
    }

    fn of_type(at: &str, wanted: &str, got: &str) -> Self {
        let message = format!("must be of type {wanted}: {}", crate::decode::quoted(got));
        Self::new(at, What::Type(got.into()), message)
    }

    fn composite(message: String) -> Self {
        Self {
            at: String::new(),
            what: What::Composite,
            message,
        }
    }

    fn error(self, path: &Path) -> FieldError {
        let place = match self.at.trim_start_matches('.') {
            "" => path.clone(),
            at => path.child(at),
        };
        match self.what {
            What::Required => FieldError::required(&place, ""),
            What::Unsupported { value, supported } => {
                let supported: Vec<&str> = supported.iter().map(String::as_str).collect();
                FieldError::not_supported(&place, value, &supported)
            }
            What::TooLong { max } => {
                FieldError::too_long(&place, usize::try_from(max).unwrap_or(0))
            }
            What::TooMany { actual, max } => {
                FieldError::too_many(&place, actual, usize::try_from(max).unwrap_or(0))
            }
            What::Type(value) => FieldError::type_invalid(&place, value, self.message),
            What::Invalid(value) => FieldError::invalid(&place, value, self.message),
            What::Composite => FieldError::invalid(path, "", self.message),
        }
    }
}

#[cfg(test)]
mod tests;
