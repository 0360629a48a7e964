//! How the objects of one definition merge: the structural schemas of all its versions as one
//! [`Schema`], so that server-side apply and the decoder treat them as built-in kinds.
//!
//! Metadata is of the built-in type. What a structural schema leaves open stays open.

use crate::json;
use crate::schema::{
    Builder, Field, ListType, MapType, Name, PatchStrategy, Schema, Shape, TypeId, TypeKind, schema,
};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::OnceLock;

pub const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
/// An object of which only the metadata is known.
pub const ENVELOPE: &str = "Envelope";
/// Fields that every object has.
const OF_OBJECTS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The versions of one kind, with their types.
#[derive(Debug)]
pub struct Family {
    schema: Schema,
    /// `group/version` and the type of its objects.
    roots: Vec<(String, TypeId)>,
}

impl Family {
    /// `versions` are pairs of `group/version` and a structural schema, null where there is none.
    pub fn of(versions: &[(String, &Value)]) -> Self {
        let mut types = Types::default();
        let roots: Vec<(String, TypeId)> = versions
            .iter()
            .map(|(version, schema)| (version.clone(), types.add(Node::Object(schema))))
            .collect();
        Self {
            schema: types.finish(),
            roots,
        }
    }

    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    pub fn root(&self, api_version: &str) -> Option<TypeId> {
        let found = self.roots.iter().find(|(own, _)| own == api_version);
        found.map(|(_, id)| *id)
    }
}

/// The schema that knows [`ENVELOPE`] and [`METADATA`], and nothing else.
pub fn envelope() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut types = Types::default();
        types.add(Node::Object(&json::NULL));
        types.finish()
    })
}

/// A type that is still to be added.
#[derive(Clone, Copy)]
enum Node<'v> {
    /// A whole object of a version.
    Object(&'v Value),
    /// An object within.
    Part(&'v Value),
    /// One of the built-in types.
    BuiltIn(TypeId),
}

/// Types are numbered when they are first named, and added in that order.
#[derive(Default)]
struct Types<'v> {
    builder: Builder,
    nodes: Vec<Node<'v>>,
    built_in: HashMap<TypeId, TypeId>,
}

impl<'v> Types<'v> {
    fn add(&mut self, node: Node<'v>) -> TypeId {
        if let Node::BuiltIn(id) = node
            && let Some(known) = self.built_in.get(&id)
        {
            return *known;
        }
        let index = u32::try_from(self.nodes.len()).expect("a definition is far below 4 GiB");
        let own = self.builder.type_id(index);
        self.nodes.push(node);
        if let Node::BuiltIn(id) = node {
            self.built_in.insert(id, own);
        }
        own
    }

    fn finish(mut self) -> Schema {
        let mut next = 0;
        while let Some(node) = self.nodes.get(next).copied() {
            match node {
                Node::Object(schema) => self.object(schema),
                Node::Part(schema) => self.part(schema, next),
                Node::BuiltIn(id) => self.built_in(id),
            }
            next += 1;
        }
        self.builder.finish()
    }

    fn object(&mut self, schema: &'v Value) {
        let name = if schema.is_null() { ENVELOPE } else { "Object" };
        self.builder.add_type(name, TypeKind::Struct, false, "");
        self.set_rest(schema, schema.is_null());
        for name in ["apiVersion", "kind"] {
            self.field(name, Shape::String, &json::NULL, false);
        }
        let metadata = self.metadata();
        self.field("metadata", metadata, &json::NULL, false);
        self.properties(schema, true);
    }

    fn part(&mut self, schema: &'v Value, number: usize) {
        let atomic = json::text(schema, "x-kubernetes-map-type") == "atomic";
        let name = format!("Part{number}");
        self.builder.add_type(&name, TypeKind::Struct, atomic, "");
        let is_resource = json::flag(schema, "x-kubernetes-embedded-resource");
        self.set_rest(schema, false);
        if is_resource {
            for name in ["apiVersion", "kind"] {
                self.field(name, Shape::String, &json::NULL, false);
            }
            let metadata = self.metadata();
            self.field("metadata", metadata, &json::NULL, false);
        }
        self.properties(schema, is_resource);
    }

    fn metadata(&mut self) -> Shape {
        let known = schema().find(METADATA);
        known.map_or(Shape::Any, |id| Shape::Type(self.add(Node::BuiltIn(id))))
    }

    fn properties(&mut self, schema: &'v Value, is_resource: bool) {
        let required = json::list(schema, "required");
        for (name, property) in json::entries(schema, "properties") {
            if is_resource && OF_OBJECTS.contains(&name) {
                continue;
            }
            let shape = self.shape(property);
            let is_required = required.iter().any(|one| one == name);
            self.field(name, shape, property, is_required);
        }
    }

    fn set_rest(&mut self, schema: &'v Value, is_open: bool) {
        let additional = json::get(schema, "additionalProperties");
        let keeps = json::flag(schema, "x-kubernetes-preserve-unknown-fields");
        if additional.is_object() {
            let shape = self.shape(additional);
            self.builder.set_rest(shape);
        } else if is_open || keeps || *additional == true {
            self.builder.set_rest(Shape::Any);
        }
    }

    fn shape(&mut self, schema: &'v Value) -> Shape {
        if json::flag(schema, "x-kubernetes-int-or-string") {
            return Shape::Any;
        }
        match json::text(schema, "type") {
            "string" => Shape::String,
            "integer" => Shape::Int64,
            "number" => Shape::Double,
            "boolean" => Shape::Bool,
            "array" => {
                let items = json::get(schema, "items");
                let item = self.shape(items);
                self.builder.list_of(item)
            }
            "object" => Shape::Type(self.add(Node::Part(schema))),
            _ => Shape::Any,
        }
    }

    fn field(&mut self, name: &str, shape: Shape, schema: &Value, required: bool) {
        let keys: Vec<&str> = json::list(schema, "x-kubernetes-list-map-keys")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let default = json::some(schema, "default").map(Value::to_string);
        let field = Field {
            name: self.builder.name(name),
            shape,
            required,
            list_type: match json::text(schema, "x-kubernetes-list-type") {
                "atomic" => ListType::Atomic,
                "set" => ListType::Set,
                "map" => ListType::Map,
                _ => ListType::Unsaid,
            },
            map_keys: self.builder.name(&keys.join(" ")),
            strategy: PatchStrategy::default(),
            merge_key: Name::default(),
            map_type: match json::text(schema, "x-kubernetes-map-type") {
                "granular" => MapType::Granular,
                "atomic" => MapType::Atomic,
                _ => MapType::Unsaid,
            },
            go_type: Name::default(),
            drops_zero: false,
            shows_null: false,
            default: self.builder.name(default.as_deref().unwrap_or("")),
            enumeration: Name::default(),
        };
        self.builder.add_field(field);
    }

    /// A copy of a built-in type, and of all that it names.
    fn built_in(&mut self, id: TypeId) {
        let from = schema();
        let one = *from.get(id);
        let union = from.text(one.union);
        let name = from.type_name(id);
        self.builder.add_type(name, one.kind, one.atomic, union);
        for field in from.fields(id) {
            let shape = self.copied(field.shape);
            let mut name = |name: Name| self.builder.name(from.text(name));
            let copy = Field {
                name: name(field.name),
                shape,
                map_keys: name(field.map_keys),
                merge_key: name(field.merge_key),
                go_type: name(field.go_type),
                default: name(field.default),
                enumeration: name(field.enumeration),
                ..*field
            };
            self.builder.add_field(copy);
        }
    }

    fn copied(&mut self, shape: Shape) -> Shape {
        let from = schema();
        match shape {
            Shape::Type(id) => Shape::Type(self.add(Node::BuiltIn(id))),
            Shape::List(item) => {
                let item = self.copied(from.shape(item));
                self.builder.list_of(item)
            }
            Shape::Map(value) => {
                let value = self.copied(from.shape(value));
                self.builder.map_of(value)
            }
            plain => plain,
        }
    }
}

#[cfg(test)]
mod tests;
