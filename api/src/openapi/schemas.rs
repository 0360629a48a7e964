//! The schemas of a document: every type that its paths name, with all they refer to.

use super::operation::{PATCH, Style};
use crate::resource::Resource;
use crate::schema::{
    Field, KnownKind, ListType, MapType, Schema, Shape, TypeId, TypeKind, descriptions, kinds,
    unescape,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// Kinds of every group version, and all that upstream has, served or not.
const OF_ALL_GROUPS: [&str; 2] = ["DeleteOptions", "WatchEvent"];
const ALL_GROUPS: &[(&str, &[&str])] = &[
    ("", &["v1"]),
    ("admission.k8s.io", &["v1", "v1beta1"]),
    (
        "admissionregistration.k8s.io",
        &["v1", "v1alpha1", "v1beta1"],
    ),
    ("apiextensions.k8s.io", &["v1", "v1beta1"]),
    ("apiregistration.k8s.io", &["v1", "v1beta1"]),
    ("apps", &["v1", "v1beta1", "v1beta2"]),
    ("authentication.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("authorization.k8s.io", &["v1", "v1beta1"]),
    ("autoscaling", &["v1", "v2"]),
    ("batch", &["v1", "v1beta1"]),
    ("certificates.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("coordination.k8s.io", &["v1", "v1alpha2", "v1beta1"]),
    ("discovery.k8s.io", &["v1", "v1beta1"]),
    ("events.k8s.io", &["v1", "v1beta1"]),
    ("extensions", &["v1beta1"]),
    (
        "flowcontrol.apiserver.k8s.io",
        &["v1", "v1beta1", "v1beta2", "v1beta3"],
    ),
    ("imagepolicy.k8s.io", &["v1alpha1"]),
    ("internal.apiserver.k8s.io", &["v1alpha1"]),
    ("networking.k8s.io", &["v1", "v1beta1"]),
    ("node.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("policy", &["v1", "v1beta1"]),
    ("rbac.authorization.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("resource.k8s.io", &["v1", "v1alpha3", "v1beta1", "v1beta2"]),
    ("scheduling.k8s.io", &["v1", "v1alpha2", "v1beta1"]),
    ("storage.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("storagemigration.k8s.io", &["v1beta1"]),
];

/// The types of one document, gathered with all they refer to.
pub(super) struct Types<'s> {
    schema: &'s Schema,
    style: Style,
    /// Of a document about one group version.
    own: Option<(&'s str, &'s str)>,
    /// With the kinds that a type is, sorted as documents list them.
    wanted: BTreeMap<TypeId, Vec<Kind>>,
    has_patch: bool,
}

type Kind = (String, String, String);

impl<'s> Types<'s> {
    pub fn new(schema: &'s Schema, style: Style, own: Option<(&'s str, &'s str)>) -> Self {
        Self {
            schema,
            style,
            own,
            wanted: BTreeMap::new(),
            has_patch: false,
        }
    }

    /// Adds a type, and all it refers to.
    pub fn add(&mut self, name: &str) {
        match self.schema.find(name) {
            Some(id) => self.reach(id),
            // The one body that has no fields: a patch of any type.
            None => self.has_patch |= name == PATCH,
        }
    }

    fn kinds_of(&self, name: &str) -> Vec<Kind> {
        let kind = name.strip_prefix(META).map(|rest| &rest[1..]);
        let everywhere = kind.filter(|kind| OF_ALL_GROUPS.contains(kind));
        let Some(kind) = everywhere else {
            let own = kinds().iter().filter(|kind| kind.schema == name);
            return own
                .map(|one| triple(one.group, one.version, one.kind))
                .collect();
        };
        match self.own {
            Some(("", version)) => vec![triple("", version, kind)],
            Some((group, version)) => {
                vec![triple("", "v1", kind), triple(group, version, kind)]
            }
            None => {
                let all = ALL_GROUPS.iter().flat_map(|(group, versions)| {
                    let versions = versions.iter();
                    versions.map(move |version| triple(group, version, kind))
                });
                all.collect()
            }
        }
    }

    fn reach(&mut self, id: TypeId) {
        let mut stack = vec![id];
        while let Some(id) = stack.pop() {
            if self.wanted.contains_key(&id) {
                continue;
            }
            let name = self.schema.type_name(id);
            self.wanted.insert(id, self.kinds_of(name));
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

    /// Gives each type to `put`, one at a time, so that no whole document is held as a tree.
    pub fn each(&self, put: &mut dyn FnMut(&str, &Value)) {
        let descriptions = descriptions();
        let mut lines = descriptions.lines();
        for id in self.schema.types() {
            let fields = self.schema.fields(id);
            let Some(kinds) = self.wanted.get(&id) else {
                lines.by_ref().take(fields.len() + 1).for_each(drop);
                continue;
            };
            let own = unescape(lines.next().unwrap_or(""));
            let fields: Vec<(&Field, String)> = fields
                .iter()
                .map(|field| (field, unescape(lines.next().unwrap_or(""))))
                .collect();
            let schema = self.type_schema(id, kinds, own, &fields);
            put(self.schema.type_name(id), &schema);
        }
        if self.has_patch {
            let text = "Patch is provided to give a concrete name and type to the Kubernetes \
                        PATCH request body.";
            put(PATCH, &json!({ "description": text, "type": "object" }));
        }
    }

    fn type_schema(
        &self,
        id: TypeId,
        kinds: &[Kind],
        description: String,
        fields: &[(&Field, String)],
    ) -> Value {
        let mut schema = Map::new();
        if !description.is_empty() {
            schema.insert("description".into(), description.into());
        }
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
        if let Some(union) = union(self.schema.text(one.union)) {
            schema.insert("x-kubernetes-unions".into(), json!([union]));
        }
        Value::Object(schema)
    }

    fn field_schema(&self, field: &Field, description: &str) -> Value {
        let mut schema = Map::new();
        if !description.is_empty() {
            schema.insert("description".into(), description.into());
        }
        let default = self.schema.text(field.default);
        let default = if self.style == Style::V3 { default } else { "" };
        let is_described = !schema.is_empty() || !default.is_empty();
        let shape = self.shape_schema(field.shape);
        match (self.style, field.shape) {
            // In OpenAPI 3.0 nothing may stand beside a reference.
            (Style::V3, Shape::Type(_)) if is_described => {
                set(&mut schema, json!({ "allOf": [shape] }));
            }
            _ => set(&mut schema, shape),
        }
        if let Ok(values) = serde_json::from_str(self.schema.text(field.enumeration)) {
            let of_items = ["items", "additionalProperties"];
            match of_items.into_iter().find(|key| schema.contains_key(*key)) {
                Some(key) => schema[key]["enum"] = values,
                None => drop(schema.insert("enum".into(), values)),
            }
        }
        if let Ok(default) = serde_json::from_str(default) {
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

fn set(schema: &mut Map<String, Value>, more: Value) {
    if let Value::Object(more) = more {
        schema.extend(more);
    }
}

fn triple(group: &str, version: &str, kind: &str) -> Kind {
    (group.to_owned(), version.to_owned(), kind.to_owned())
}

/// One of `x-kubernetes-unions`.
fn union(text: &str) -> Option<Value> {
    let (discriminator, fields) = text.split_once(':')?;
    let fields = fields.split(',').filter_map(|one| one.split_once('='));
    let fields: Map<String, Value> = fields
        .map(|(field, name)| (field.to_owned(), name.into()))
        .collect();
    let mut union = json!({ "fields-to-discriminateBy": fields });
    if !discriminator.is_empty() {
        union["discriminator"] = discriminator.into();
    }
    Some(union)
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
