//! Schemas of custom resources, as documents show them: what the definition states, and what every
//! object has.

use super::operation::Style;
use super::schemas::Types;
use crate::custom::Version;
use crate::json;
use crate::resource::Resource;
use crate::schema::schema;
use serde_json::{Map, Value, json};

pub const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
pub const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const ANY_OBJECT: &str = "io.k8s.api.core.v1.ConfigMap";
const OF_OBJECTS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The name that documents have for a kind: `test.example.shop.v1.Widget`.
pub fn model_name(group: &str, version: &str, kind: &str) -> String {
    let mut parts: Vec<&str> = group.split('.').collect();
    parts.reverse();
    format!("{}.{version}.{kind}", parts.join("."))
}

/// The name of the list of a kind.
pub fn list_name(row: &Resource) -> String {
    model_name(row.group, row.version, &row.list_kind())
}

/// What documents show of custom resources.
pub struct Models {
    style: Style,
    /// `apiVersion`, `kind` and `metadata` of any object.
    native: Map<String, Value>,
}

impl Models {
    pub fn new(style: Style) -> Self {
        let mut types = Types::new(schema(), style, None);
        types.add(ANY_OBJECT);
        let mut native = Map::new();
        types.each(&mut |name, value| {
            if name == ANY_OBJECT {
                let properties = OF_OBJECTS.iter().map(|field| {
                    let property = json::get(json::get(value, "properties"), field);
                    ((*field).to_owned(), property.clone())
                });
                native = properties.collect();
            }
        });
        Self { style, native }
    }

    /// Gives the kind and its list to `put`.
    pub fn each(&self, row: &Resource, put: &mut dyn FnMut(&str, &Value)) {
        let Some(version) = row.rules.custom() else {
            return;
        };
        put(row.schema, &self.object(row, &version));
        put(&list_name(row), &self.list(row));
    }

    fn object(&self, row: &Resource, version: &Version) -> Value {
        let keeps = |schema: &Value| json::flag(schema, "x-kubernetes-preserve-unknown-fields");
        let is_open = version.keeps_unknown || keeps(&version.schema);
        let mut model = if version.schema.is_null() || self.style == Style::V2 && is_open {
            // kubectl takes what has properties for closed.
            json!({ "type": "object" })
        } else {
            let mut model = version.schema.clone();
            self.shape(&mut model, true);
            let properties = model["properties"].take();
            let mut properties = match properties {
                Value::Object(properties) => properties,
                _ => Map::new(),
            };
            properties.extend(self.native.clone());
            model["properties"] = properties.into();
            model
        };
        self.name(row, row.kind, &mut model);
        model
    }

    fn list(&self, row: &Resource) -> Value {
        let list_kind = row.list_kind();
        let items = format!(
            "List of {}. More info: https://git.k8s.io/community/contributors/devel/\
             sig-architecture/api-conventions.md",
            row.plural
        );
        let mut properties = self.native.clone();
        let metadata = json!({ "description": "Standard list metadata." });
        properties.insert("metadata".into(), self.referring(metadata, LIST_META));
        properties.insert(
            "items".into(),
            json!({
                "description": items, "type": "array",
                "items": self.style.reference(row.schema),
            }),
        );
        let mut model = json!({
            "description": format!("{list_kind} is a list of {}", row.kind),
            "type": "object", "required": ["items"], "properties": properties,
        });
        self.name(row, &list_kind, &mut model);
        model
    }

    fn name(&self, row: &Resource, kind: &str, model: &mut Value) {
        model["x-kubernetes-group-version-kind"] =
            json!([{ "group": row.group, "version": row.version, "kind": kind }]);
        if row.selectable_fields.is_empty() {
            return;
        }
        let fields = row.selectable_fields.iter();
        let fields = fields.map(|field| json!({ "fieldPath": field }));
        model["x-kubernetes-selectable-fields"] = fields.collect();
    }

    /// In OpenAPI 3.0 nothing may stand beside a reference.
    fn referring(&self, mut property: Value, name: &str) -> Value {
        let reference = self.style.reference(name);
        match self.style {
            Style::V2 => property["$ref"] = reference["$ref"].clone(),
            Style::V3 => property["allOf"] = json!([reference]),
        }
        property
    }

    /// Brings a schema into the form of documents, and all within.
    fn shape(&self, model: &mut Value, is_root: bool) {
        if json::flag(model, "x-kubernetes-int-or-string") {
            unfold(model);
        }
        if self.style == Style::V2 {
            plain(model);
        }
        for field in ["items", "additionalProperties"] {
            if let Some(inner) = json::object_mut(model, field) {
                self.shape(inner, false);
            }
        }
        if let Some(properties) = model.get_mut("properties").and_then(Value::as_object_mut) {
            for property in properties.values_mut() {
                self.shape(property, false);
            }
        }
        let is_open = json::flag(model, "x-kubernetes-preserve-unknown-fields");
        let is_resource = json::flag(model, "x-kubernetes-embedded-resource");
        if is_root || !is_resource || is_open && self.style == Style::V2 {
            return;
        }
        for (name, property) in &self.native {
            model["properties"][name] = property.clone();
        }
        let mut required = json::list(model, "required").to_vec();
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|one| one == name) {
                required.push(name.into());
            }
        }
        model["required"] = required.into();
    }
}

/// Says in plain OpenAPI that a value is a number or a text.
fn unfold(model: &mut Value) {
    let either = json!([{ "type": "integer" }, { "type": "string" }]);
    let is_said = |one: &Value| one["anyOf"] == either;
    if is_said(model) || json::list(model, "allOf").first().is_some_and(is_said) {
        return;
    }
    if json::has(model, "anyOf") {
        let mut all = json::list(model, "allOf").to_vec();
        all.insert(0, json!({ "anyOf": either }));
        model["allOf"] = all.into();
    } else {
        model["anyOf"] = either;
    }
}

/// Takes out what OpenAPI 2.0 has no word for, and what kubectl does not bear there.
fn plain(model: &mut Value) {
    let is_open = json::flag(model, "x-kubernetes-preserve-unknown-fields");
    let is_nullable = json::flag(model, "nullable");
    let nullable = |schema: &Value| json::flag(schema, "nullable");
    let properties = json::entries(model, "properties");
    let optional: Vec<String> = properties
        .filter(|(_, property)| nullable(property))
        .map(|(name, _)| name.to_owned())
        .collect();
    let is_optional = nullable(json::get(model, "additionalProperties"));
    let Some(fields) = model.as_object_mut() else {
        return;
    };
    for unsaid in ["allOf", "oneOf", "anyOf", "not", "default"] {
        fields.remove(unsaid);
    }
    if is_nullable || is_open {
        fields.remove("items");
        fields.remove("properties");
    }
    if is_nullable {
        fields.remove("type");
        fields.remove("nullable");
    }
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or("");
    let is_untold = kind == "array" && !fields.contains_key("items");
    if is_untold || is_open && kind == "object" {
        fields.remove("type");
    }
    if let Some(required) = fields.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !is_optional && !optional.iter().any(|one| name == one));
        if required.is_empty() {
            fields.remove("required");
        }
    }
}
