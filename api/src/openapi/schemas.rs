//! The schemas of a document: every type that its paths and kinds reach.

use super::operation::Style;
use crate::catalogue;
use crate::resource::Resource;
use crate::schema::{
    Field, KnownKind, ListType, MapType, Schema, Shape, TypeId, TypeKind, descriptions, kinds,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// Types that every document has.
const COMMON: &[&str] = &["DeleteOptions", "Status", "WatchEvent"];

/// The types of one document, gathered with all they refer to.
pub(super) struct Types<'s> {
    schema: &'s Schema,
    style: Style,
    /// With the kinds that a type is, sorted as documents list them.
    wanted: BTreeMap<TypeId, Vec<Kind>>,
}

type Kind = (String, String, String);

impl<'s> Types<'s> {
    pub fn new(schema: &'s Schema, style: Style) -> Self {
        Self {
            schema,
            style,
            wanted: BTreeMap::new(),
        }
    }

    /// Adds the kinds of a served group version, their lists and the bodies of subresources.
    pub fn add_version(&mut self, group: &str, version: &str) {
        for name in COMMON {
            self.add(&format!("{META}.{name}"));
        }
        if let Some(id) = self.schema.find(&format!("{META}.DeleteOptions")) {
            let kinds = self.wanted.entry(id).or_default();
            let own = |group: &str, version: &str| {
                (
                    group.to_owned(),
                    version.to_owned(),
                    "DeleteOptions".to_owned(),
                )
            };
            kinds.extend([own("", "v1"), own(group, version)]);
            kinds.sort();
            kinds.dedup();
        }
        for row in catalogue::of_version(group, version) {
            self.add(row.schema);
            if let Some(list) = list_of(row) {
                self.add(list.schema);
            }
            for sub in row.subresources {
                if let Some(body) = sub.body.and_then(|body| known(body.0, body.1, body.2)) {
                    self.add(body.schema);
                }
            }
        }
    }

    fn add(&mut self, name: &str) {
        if let Some(id) = self.schema.find(name) {
            self.reach(id);
        }
    }

    fn reach(&mut self, id: TypeId) {
        let mut stack = vec![id];
        while let Some(id) = stack.pop() {
            if self.wanted.contains_key(&id) {
                continue;
            }
            let name = self.schema.type_name(id);
            let own = kinds().iter().filter(|kind| kind.schema == name);
            let own = own.map(|kind| {
                (
                    kind.group.to_owned(),
                    kind.version.to_owned(),
                    kind.kind.to_owned(),
                )
            });
            self.wanted.insert(id, own.collect());
            stack.extend(
                self.schema
                    .fields(id)
                    .iter()
                    .filter_map(|field| self.target(field.shape)),
            );
        }
    }

    fn target(&self, shape: Shape) -> Option<TypeId> {
        match shape {
            Shape::Type(id) => Some(id),
            Shape::List(inner) | Shape::Map(inner) => self.target(self.schema.shape(inner)),
            _ => None,
        }
    }

    /// Writes one JSON object, a type at a time, so that no whole document is held as a tree.
    pub fn write(&self, text: &mut Vec<u8>) {
        let descriptions = descriptions();
        let mut lines = descriptions.lines();
        text.push(b'{');
        let patch = json!({
            "description": "Patch stands for the body of a patch of any of the patch types.",
            "type": "object",
        });
        write_entry(text, &format!("{META}.Patch"), &patch);
        for id in self.schema.types() {
            let fields = self.schema.fields(id);
            let Some(kinds) = self.wanted.get(&id) else {
                lines.by_ref().take(fields.len() + 1).for_each(drop);
                continue;
            };
            let own = plain(lines.next().unwrap_or(""));
            let fields: Vec<(&Field, String)> = fields
                .iter()
                .map(|field| (field, plain(lines.next().unwrap_or(""))))
                .collect();
            text.push(b',');
            write_entry(
                text,
                self.schema.type_name(id),
                &self.type_schema(id, kinds, own, &fields),
            );
        }
        text.push(b'}');
    }

    fn type_schema(
        &self,
        id: TypeId,
        kinds: &[Kind],
        description: String,
        fields: &[(&Field, String)],
    ) -> Value {
        let mut schema = Map::new();
        schema.insert("description".into(), description.into());
        let one = self.schema.get(id);
        match (one.kind, self.style) {
            (TypeKind::Struct | TypeKind::Raw, _) => set(&mut schema, json!({ "type": "object" })),
            (TypeKind::Any, _) => {}
            (TypeKind::Time | TypeKind::MicroTime, _) => {
                set(
                    &mut schema,
                    json!({ "type": "string", "format": "date-time" }),
                );
            }
            (TypeKind::Quantity, Style::V2) => set(&mut schema, json!({ "type": "string" })),
            (TypeKind::Quantity, Style::V3) => {
                set(
                    &mut schema,
                    json!({ "oneOf": [{ "type": "string" }, { "type": "number" }] }),
                );
            }
            (TypeKind::IntOrString, Style::V2) => {
                set(
                    &mut schema,
                    json!({ "type": "string", "format": "int-or-string" }),
                );
            }
            (TypeKind::IntOrString, Style::V3) => set(
                &mut schema,
                json!({
                    "format": "int-or-string",
                    "oneOf": [{ "type": "integer" }, { "type": "string" }],
                }),
            ),
        }
        let required = fields.iter().filter(|(field, _)| field.required);
        let required: Vec<&str> = required
            .map(|(field, _)| self.schema.text(field.name))
            .collect();
        if !required.is_empty() {
            schema.insert("required".into(), required.into());
        }
        if !fields.is_empty() {
            let properties: Map<String, Value> = fields
                .iter()
                .map(|(field, text)| {
                    let name = self.schema.text(field.name).to_owned();
                    (name, self.field_schema(field, text))
                })
                .collect();
            schema.insert("properties".into(), Value::Object(properties));
        }
        if !kinds.is_empty() {
            let kinds = kinds.iter().map(|(group, version, kind)| {
                json!({ "group": group, "version": version, "kind": kind })
            });
            schema.insert("x-kubernetes-group-version-kind".into(), kinds.collect());
        }
        if one.atomic {
            schema.insert("x-kubernetes-map-type".into(), "atomic".into());
        }
        Value::Object(schema)
    }

    fn field_schema(&self, field: &Field, description: &str) -> Value {
        let mut schema = Map::new();
        if !description.is_empty() {
            schema.insert("description".into(), description.into());
        }
        let shape = self.shape_schema(field.shape);
        match (self.style, field.shape) {
            // In OpenAPI 3.0 nothing may stand beside a reference.
            (Style::V3, Shape::Type(_)) => set(&mut schema, json!({ "allOf": [shape] })),
            _ => set(&mut schema, shape),
        }
        if let Ok(values) = serde_json::from_str(self.schema.text(field.enumeration)) {
            match schema.get_mut("items") {
                Some(items) => items["enum"] = values,
                None => drop(schema.insert("enum".into(), values)),
            }
        }
        if let Ok(default) = serde_json::from_str(self.schema.text(field.default)) {
            schema.insert("default".into(), default);
        }
        self.merge_facts(field, &mut schema);
        Value::Object(schema)
    }

    /// The `x-kubernetes-` extensions that say how lists and maps merge.
    fn merge_facts(&self, field: &Field, schema: &mut Map<String, Value>) {
        let list_type = match field.list_type {
            ListType::Unsaid => None,
            ListType::Atomic => Some("atomic"),
            ListType::Set => Some("set"),
            ListType::Map => Some("map"),
        };
        let map_type = match field.map_type {
            MapType::Unsaid => None,
            MapType::Granular => Some("granular"),
            MapType::Atomic => Some("atomic"),
        };
        let mut say = |name: &str, value: Value| drop(schema.insert(name.to_owned(), value));
        if let Some(list_type) = list_type {
            say("x-kubernetes-list-type", list_type.into());
        }
        if field.list_type == ListType::Map {
            let keys: Vec<&str> = self.schema.map_keys(field).collect();
            say("x-kubernetes-list-map-keys", keys.into());
        }
        if let Some(map_type) = map_type {
            say("x-kubernetes-map-type", map_type.into());
        }
        let strategies = [
            ("merge", field.strategy.merge),
            ("replace", field.strategy.replace),
            ("retainKeys", field.strategy.retain_keys),
        ];
        let strategies: Vec<&str> = strategies
            .iter()
            .filter(|one| one.1)
            .map(|one| one.0)
            .collect();
        if !strategies.is_empty() {
            say("x-kubernetes-patch-strategy", strategies.join(",").into());
        }
        let merge_key = self.schema.text(field.merge_key);
        if !merge_key.is_empty() {
            say("x-kubernetes-patch-merge-key", merge_key.into());
        }
    }

    fn shape_schema(&self, shape: Shape) -> Value {
        match shape {
            Shape::String => json!({ "type": "string" }),
            Shape::Bytes => json!({ "type": "string", "format": "byte" }),
            Shape::Int32 => json!({ "type": "integer", "format": "int32" }),
            Shape::Int64 => json!({ "type": "integer", "format": "int64" }),
            Shape::Double => json!({ "type": "number", "format": "double" }),
            Shape::Bool => json!({ "type": "boolean" }),
            Shape::Any => json!({}),
            Shape::Type(id) => self.style.reference(self.schema.type_name(id)),
            Shape::List(item) => {
                json!({ "type": "array", "items": self.shape_schema(self.schema.shape(item)) })
            }
            Shape::Map(value) => json!({
                "type": "object",
                "additionalProperties": self.shape_schema(self.schema.shape(value)),
            }),
        }
    }
}

fn write_entry(text: &mut Vec<u8>, name: &str, schema: &Value) {
    serde_json::to_writer(&mut *text, name).expect("a Vec takes all");
    text.push(b':');
    serde_json::to_writer(text, schema).expect("a Vec takes all");
}

fn set(schema: &mut Map<String, Value>, more: Value) {
    if let Value::Object(more) = more {
        schema.extend(more);
    }
}

/// A description as it was before the build put it on one line.
fn plain(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some(other) => text.push(other),
                None => {}
            },
            _ => text.push(c),
        }
    }
    text
}

/// What the schema knows of a kind.
pub(super) fn known(group: &str, version: &str, kind: &str) -> Option<&'static KnownKind> {
    kinds()
        .iter()
        .find(|one| one.group == group && one.version == version && one.kind == kind)
}

/// The list of a resource's kind.
pub(super) fn list_of(row: &Resource) -> Option<&'static KnownKind> {
    known(row.group, row.version, &format!("{}List", row.kind))
}
