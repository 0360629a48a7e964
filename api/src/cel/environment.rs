//! What an expression may name: variables with their types, and the fields of structs.

use super::budget::Budget;
use super::extents::Extents;
use super::types::Type;
use crate::json;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Structs nest no deeper in a schema; the decoder of requests holds to less.
const DEPTH_MAX: usize = 128;

/// Names that stand for types.
const TYPES: [&str; 12] = [
    "bool",
    "bytes",
    "double",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "int",
    "list(<A>)",
    "map(<A>,<B>)",
    "null_type",
    "string",
    "type",
    "uint",
];

/// The fields of a struct, with their types.
type Fields = BTreeMap<String, Type>;

#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<String, Type>,
    structs: BTreeMap<String, Fields>,
    /// `Object`, with all below it, and `JSONPatch` may be made, and `jsonpatch.` has a function.
    has_patches: bool,
    /// There is `cel.bind`.
    has_bind: bool,
    /// Of the object whose expressions these are.
    budget: Budget,
    /// How large the variables may be, where that is known.
    extents: Option<Arc<Extents>>,
}

impl Environment {
    #[must_use]
    pub fn with(mut self, name: &str, of: Type) -> Self {
        self.variables.insert(name.to_owned(), of);
        self
    }

    /// With the budget of an object. Without, an environment and its clones have one of their own.
    #[must_use]
    pub fn within(mut self, budget: &Budget) -> Self {
        self.budget = budget.clone();
        self
    }

    /// With what is known of how large the variables may be: what an expression costs is estimated.
    #[must_use]
    pub fn sized(mut self, extents: Extents) -> Self {
        self.extents = Some(Arc::new(extents));
        self
    }

    pub fn extents(&self) -> Option<&Extents> {
        self.extents.as_deref()
    }

    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// How much there is to name.
    pub fn size(&self) -> usize {
        let fields: usize = self.structs.values().map(BTreeMap::len).sum();
        self.variables.len() + self.structs.len() + fields
    }

    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.variables.remove(name);
        self
    }

    /// Adds a field to a struct, which there is from then on.
    pub fn add_field(&mut self, of_struct: &str, name: &str, of: Type) {
        let fields = self.structs.entry(of_struct.to_owned()).or_default();
        fields.insert(name.to_owned(), of);
    }

    /// Adds a struct with fields from `name type`, one each.
    #[must_use]
    pub fn with_struct(mut self, name: &str, fields: &[(&str, Type)]) -> Self {
        let fields = fields
            .iter()
            .map(|(name, of)| ((*name).to_owned(), of.clone()));
        self.structs.insert(name.to_owned(), fields.collect());
        self
    }

    #[must_use]
    pub fn with_bind(mut self) -> Self {
        self.has_bind = true;
        self
    }

    pub fn has_bind(&self) -> bool {
        self.has_bind
    }

    /// Whether there is a function of the name, as far as that differs.
    pub fn may_call(&self, function: &str) -> bool {
        self.has_patches || !function.starts_with("jsonpatch.")
    }

    #[must_use]
    pub fn with_patches(mut self) -> Self {
        self.has_patches = true;
        let fields = ["op", "path", "from"].map(|name| (name, Type::String));
        let mut fields = fields.to_vec();
        fields.push(("value", Type::Dyn));
        self.with_struct("JSONPatch", &fields)
    }

    /// The type of values that a structural schema lets be; its structs are added. `None` where
    /// nothing can be said of them. `is_resource` where the schema is that of a whole resource.
    pub fn of_schema(&mut self, schema: &Value, is_resource: bool, name: &str) -> Option<Type> {
        self.schema_below(schema, is_resource, name, DEPTH_MAX)
    }

    fn schema_below(
        &mut self,
        schema: &Value,
        is_resource: bool,
        name: &str,
        depth: usize,
    ) -> Option<Type> {
        let depth = depth.checked_sub(1)?;
        if json::flag(schema, "x-kubernetes-int-or-string") {
            return Some(Type::Dyn);
        }
        let mut inner = |one: &Value, name: &str| {
            let embedded = json::flag(one, "x-kubernetes-embedded-resource");
            self.schema_below(one, embedded, name, depth)
        };
        Some(
            match (json::text(schema, "type"), json::text(schema, "format")) {
                ("array", _) => {
                    let items = json::some(schema, "items")?;
                    Type::list(inner(items, &format!("{name}.@idx"))?)
                }
                ("object", _) => {
                    let additional = json::get(schema, "additionalProperties");
                    if additional.is_object() {
                        let values = inner(additional, &format!("{name}.@elem"))?;
                        return Some(Type::map(Type::String, values));
                    }
                    let mut fields = BTreeMap::new();
                    for (property, schema) in json::entries(schema, "properties") {
                        let of = inner(schema, &format!("{name}.{property}"));
                        if let (Some(of), Some(field)) = (of, escaped(property)) {
                            fields.insert(field, of);
                        }
                    }
                    if is_resource {
                        self.add_metadata(&mut fields, name);
                    }
                    self.structs.insert(name.to_owned(), fields);
                    Type::of_struct(name)
                }
                ("string", "byte") => Type::Bytes,
                ("string", "duration") => Type::Duration,
                ("string", "date" | "date-time") => Type::Timestamp,
                ("string", _) => Type::String,
                ("boolean", _) => Type::Bool,
                ("number", _) => Type::Double,
                ("integer", _) => Type::Int,
                _ => return None,
            },
        )
    }

    /// Every resource has these, and they are of these types whatever its schema says.
    fn add_metadata(&mut self, fields: &mut BTreeMap<String, Type>, name: &str) {
        let metadata = format!("{name}.metadata");
        let names = ["name", "generateName"].map(|name| (name.to_owned(), Type::String));
        self.structs.insert(metadata.clone(), names.into());
        fields.insert("metadata".to_owned(), Type::of_struct(&metadata));
        for field in ["apiVersion", "kind"] {
            fields.insert(field.to_owned(), Type::String);
        }
    }

    /// A variable, or a type as a value.
    pub fn variable(&self, name: &str) -> Option<Type> {
        let known = self.variables.get(name).cloned();
        known.or_else(|| {
            let is_name = |one: &&&str| one.split('(').next() == Some(name);
            let found = TYPES.iter().find(is_name)?;
            Some(Type::Kind(Type::parse(found).map(Into::into)))
        })
    }

    /// The type of a struct that an expression makes.
    pub fn made(&self, name: &str) -> Option<Type> {
        let is_known = self.structs.contains_key(name) || self.is_dynamic(name);
        is_known.then(|| Type::of_struct(name))
    }

    fn is_dynamic(&self, name: &str) -> bool {
        let below = name.strip_prefix("Object");
        self.has_patches && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// `None` for a struct of which nothing is known, `Some(None)` for a field that it has not.
    pub fn field(&self, of_struct: &str, field: &str) -> Option<Option<Type>> {
        if self.is_dynamic(of_struct) {
            return Some(Some(Type::Dyn));
        }
        Some(self.structs.get(of_struct)?.get(field).cloned())
    }
}

/// Words that the language keeps to itself, so that nothing is named by them.
pub const KEYWORDS: [&str; 21] = [
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

/// The name of a property in expressions; `None` for one that has none.
pub fn escaped(property: &str) -> Option<String> {
    if KEYWORDS.contains(&property) {
        return Some(format!("__{property}__"));
    }
    let first = property.chars().next()?;
    let in_name = |c: char| c.is_ascii_alphanumeric() || "_.-/$".contains(c);
    if first.is_ascii_digit() || !property.chars().all(in_name) || property.contains('$') {
        return None;
    }
    let escaped = property
        .replace("__", "\0")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
        .replace('\0', "__underscores__");
    Some(escaped)
}
