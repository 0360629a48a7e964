//! How large the values may be that an expression looks at, as far as their declarations say.
//!
//! Upstream's numbers: what has no bound of its own is as large as it can be in one request, and
//! each byte of that counts.

use super::environment::escaped;
use crate::json;
use serde_json::Value;
use std::collections::BTreeMap;

/// Upstream's bound of a request.
const REQUEST_BYTES_MAX: u64 = 3 * 1024 * 1024;
/// A character has no more.
const CHARACTER_BYTES_MAX: u64 = 4;
/// Structs nest no deeper in a schema; the decoder of requests holds to less.
const DEPTH_MAX: usize = 128;

/// Where a path that a variable begins leads.
#[derive(Clone, Copy, Debug, Default)]
pub enum Place<'x> {
    /// It is no part of a variable.
    #[default]
    Nowhere,
    At(&'x Extent),
    /// Nothing is known of it.
    Lost,
}

/// How large a value may be, and what is in it.
#[derive(Clone, Debug, Default)]
pub struct Extent {
    /// Characters, bytes, items or entries.
    most: u64,
    /// As JSON it has at least so many bytes.
    bytes_min: u64,
    fields: BTreeMap<String, Extent>,
    keys: Option<Box<Extent>>,
    /// Items, or values of a map.
    values: Option<Box<Extent>>,
    /// Values of a map have names as fields have.
    are_values_named: bool,
}

/// What is known of the variables.
#[derive(Clone, Debug)]
pub struct Extents {
    root: Extent,
    /// The only variable of which anything is known; all are alike where there is none.
    variable: Option<&'static str>,
}

impl<'x> Place<'x> {
    pub fn most(self) -> Option<u64> {
        match self {
            Self::At(extent) => Some(extent.most),
            Self::Nowhere | Self::Lost => None,
        }
    }

    fn step(
        self,
        extents: &'x Extents,
        name: &str,
        below: impl Fn(&'x Extent) -> Option<&'x Extent>,
    ) -> Self {
        match self {
            // As upstream: a path that begins here begins with a variable, whatever it is.
            Self::Nowhere => extents.variable(name),
            Self::At(extent) => below(extent).map_or(Self::Lost, Self::At),
            Self::Lost => Self::Lost,
        }
    }

    pub fn field(self, extents: &'x Extents, name: &str) -> Self {
        self.step(extents, name, |extent| {
            let named = extent.values.as_deref().filter(|_| extent.are_values_named);
            extent.fields.get(name).or(named)
        })
    }

    pub fn values(self, extents: &'x Extents) -> Self {
        self.step(extents, "@values", |extent| extent.values.as_deref())
    }

    pub fn keys(self, extents: &'x Extents) -> Self {
        self.step(extents, "@keys", |extent| extent.keys.as_deref())
    }

    /// Nothing is known of places in a list.
    pub fn indices(self, extents: &'x Extents) -> Self {
        self.step(extents, "@indices", |_| None)
    }
}

impl Extents {
    /// Of a variable that is as a schema says; `None` where nothing can be said of it.
    pub fn of_schema(schema: &Value, is_resource: bool) -> Option<Self> {
        Some(Self {
            root: Extent::of_schema(schema, is_resource, DEPTH_MAX)?,
            variable: None,
        })
    }

    pub fn of_variable(variable: &'static str, root: Extent) -> Self {
        let variable = Some(variable);
        Self { root, variable }
    }

    pub fn variable(&self, name: &str) -> Place<'_> {
        match self.variable {
            Some(known) if known != name => Place::Lost,
            _ => Place::At(&self.root),
        }
    }

    /// As many of the values that these are about has an object of one request at most.
    pub fn count_max(&self) -> u64 {
        REQUEST_BYTES_MAX / (self.root.bytes_min + 1)
    }
}

impl Extent {
    pub fn of(most: u64) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    pub fn object(fields: impl IntoIterator<Item = (&'static str, Extent)>) -> Self {
        let fields = fields.into_iter();
        Self {
            bytes_min: 2,
            fields: fields.map(|(name, of)| (name.to_owned(), of)).collect(),
            ..Self::default()
        }
    }

    pub fn map(keys: Extent, values: Extent, most: u64) -> Self {
        Self {
            most,
            bytes_min: 2,
            keys: Some(Box::new(keys)),
            values: Some(Box::new(values)),
            ..Self::default()
        }
    }

    /// A map whose values may be looked at as fields.
    #[must_use]
    pub fn named(mut self) -> Self {
        self.are_values_named = true;
        self
    }

    fn scalar(bytes_min: u64, most: u64) -> Self {
        Self {
            most,
            bytes_min,
            ..Self::default()
        }
    }

    fn of_schema(schema: &Value, is_resource: bool, depth: usize) -> Option<Self> {
        let depth = depth.checked_sub(1)?;
        let length = bound(schema, "maxLength");
        let characters = length.map(|length| length.saturating_mul(CHARACTER_BYTES_MAX));
        let whole = REQUEST_BYTES_MAX - 2;
        if json::flag(schema, "x-kubernetes-int-or-string") {
            return Some(Self::scalar(1, characters.unwrap_or(whole)));
        }
        let inner = |one: &Value| {
            let embedded = json::flag(one, "x-kubernetes-embedded-resource");
            Self::of_schema(one, embedded, depth)
        };
        let kind = (json::text(schema, "type"), json::text(schema, "format"));
        Some(match kind {
            ("array", _) => {
                let items = inner(json::some(schema, "items")?)?;
                let all = whole / (items.bytes_min + 1);
                Self {
                    most: bound(schema, "maxItems").unwrap_or(all),
                    bytes_min: 2,
                    values: Some(Box::new(items)),
                    ..Self::default()
                }
            }
            ("object", _) if json::get(schema, "additionalProperties").is_object() => {
                let values = inner(json::get(schema, "additionalProperties"))?;
                let all = whole / (values.bytes_min + 6);
                let most = bound(schema, "maxProperties").unwrap_or(all);
                Self::map(Self::scalar(2, 0), values, most)
            }
            ("object", _) => Self::of_fields(schema, is_resource, &inner),
            ("string", "byte") => Self::scalar(2, length.unwrap_or(whole)),
            ("string", "duration") => Self::scalar(3, 32),
            ("string", "date") => Self::scalar(12, 12),
            ("string", "date-time") => Self::scalar(21, 32),
            ("string", _) => {
                let enumerated = json::list(schema, "enum").iter();
                let longest = enumerated.map(|one| one.as_str().map_or(0, str::len)).max();
                let longest = longest.map(|length| length as u64);
                Self::scalar(2, characters.or(longest).unwrap_or(whole))
            }
            ("boolean", _) => Self::scalar(4, 0),
            ("number" | "integer", _) => Self::scalar(1, 0),
            _ => return None,
        })
    }

    fn of_fields(
        schema: &Value,
        is_resource: bool,
        inner: &dyn Fn(&Value) -> Option<Self>,
    ) -> Self {
        let required: Vec<&str> = json::list(schema, "required")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let mut all: BTreeMap<&str, Extent> = BTreeMap::new();
        for (property, schema) in json::entries(schema, "properties") {
            if let Some(of) = inner(schema) {
                all.insert(property, of);
            }
        }
        if is_resource && !has_metadata(schema) {
            let text = || Self::scalar(2, REQUEST_BYTES_MAX - 2);
            let metadata = [("name", text()), ("generateName", text())];
            all.insert("metadata", Self::object(metadata));
            all.insert("apiVersion", text());
            all.insert("kind", text());
        }
        let mut found = Self::scalar(2, 0);
        for (property, of) in all {
            let of_property = json::get(json::get(schema, "properties"), property);
            let has_default = json::has(of_property, "default");
            if required.contains(&property) && !has_default {
                found.bytes_min += property.len() as u64 + of.bytes_min + 4;
            }
            if let Some(name) = escaped(property) {
                found.fields.insert(name, of);
            }
        }
        found
    }
}

/// Whether the schema of a resource says itself what every resource has.
fn has_metadata(schema: &Value) -> bool {
    let is = |of: &[&str], kind: &str| {
        let of = of.iter().fold(schema, |schema, name| {
            json::get(json::get(schema, "properties"), name)
        });
        json::text(of, "type") == kind
    };
    is(&["kind"], "string")
        && is(&["apiVersion"], "string")
        && is(&["metadata"], "object")
        && is(&["metadata", "name"], "string")
        && is(&["metadata", "generateName"], "string")
}

fn bound(schema: &Value, field: &str) -> Option<u64> {
    let most = json::int(schema, field)?;
    Some(u64::try_from(most).unwrap_or(0))
}
