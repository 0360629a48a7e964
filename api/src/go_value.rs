//! A value as upstream's errors show it: the fields of a Go struct, by their Go names, in the order
//! of the struct, with all that is unset.
//!
//! Upstream validates internal types, whose fields have no JSON names; `facts/internal.tsv` has
//! them. What is common to all groups (`metav1`) keeps its JSON form there, and so it does here.

use crate::apply::value::write as write_json;
use crate::json;
use crate::schema::{Schema, Shape, TypeId, TypeKind, schema};
use serde_json::{Map, Value};
use std::collections::HashMap;

static FACTS: &str = include_str!("../facts/internal.tsv");

/// Fields of a pod's spec that are in the internal security context.
const HOST_FIELDS: [&str; 5] = [
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "shareProcessNamespace",
    "hostUsers",
];
const POD_SPEC: &str = "io.k8s.api.core.v1.PodSpec";

/// Compact JSON of a value of the named type.
pub fn internal(type_name: &str, value: &Value) -> String {
    let mut out = String::new();
    Printer::new().named(&mut out, type_name, value);
    out
}

/// A list of values of the named type.
pub fn internal_list(type_name: &str, values: &[Value]) -> String {
    let printer = Printer::new();
    let mut out = "[".to_owned();
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        printer.named(&mut out, type_name, value);
    }
    out.push(']');
    out
}

/// The facts, taken apart by type for one text.
struct Printer {
    schema: &'static Schema,
    rows: HashMap<&'static str, &'static str>,
}

/// One field in a row of the facts.
#[derive(Debug)]
struct Field<'a> {
    name: &'a str,
    json: String,
    unset: &'a str,
}

impl<'a> Field<'a> {
    fn parse(text: &'a str) -> Self {
        let (text, unset) = text.split_once(':').unwrap_or((text, ""));
        let (name, json) = match text.split_once('=') {
            Some((name, json)) => (name, json.to_owned()),
            None => {
                let (first, rest) = text.split_at(1);
                (text, format!("{}{rest}", first.to_ascii_lowercase()))
            }
        };
        Self { name, json, unset }
    }
}

impl Printer {
    fn new() -> Self {
        let rows = FACTS.lines().filter(|line| !line.starts_with('#'));
        Self {
            schema: schema(),
            rows: rows.filter_map(|line| line.split_once('\t')).collect(),
        }
    }

    fn named(&self, out: &mut String, type_name: &str, value: &Value) {
        match self.schema.find(type_name) {
            Some(id) if !value.is_null() => self.of_type(out, id, value),
            _ => write_json(out, value),
        }
    }

    fn of_type(&self, out: &mut String, id: TypeId, value: &Value) {
        let name = self.schema.type_name(id);
        if self.either(out, name, value) {
            return;
        }
        let row = self.rows.get(name);
        let is_struct = self.schema.get(id).kind == TypeKind::Struct;
        debug_assert!(row.is_some() || !is_struct, "{name} has no row of facts");
        let (Some(row), true) = (row, is_struct) else {
            return write_json(out, value);
        };
        out.push('{');
        let start = out.len();
        if name == POD_SPEC {
            self.fields(out, id, row, &with_internal_context(value));
        } else {
            self.fields(out, id, row, value);
        }
        debug_assert!(!out[start..].starts_with(','));
        out.push('}');
    }

    fn fields(&self, out: &mut String, id: TypeId, row: &str, value: &Value) {
        let is_common = self
            .schema
            .type_name(id)
            .starts_with("io.k8s.apimachinery.");
        let start = out.len();
        for text in row.split(' ') {
            // Embedded in Go, metadata shows its fields in its place.
            if text == "@metadata" {
                self.metadata(out, id, json::get(value, "metadata"));
                continue;
            }
            let field = Field::parse(text);
            let found = json::some(value, &field.json);
            if field.unset == "-" && found.is_none_or(json::is_empty) {
                continue;
            }
            if out.len() > start {
                out.push(',');
            }
            let shown = if is_common { &field.json } else { field.name };
            write_json(out, &shown.into());
            out.push(':');
            let shape = self.schema.field(id, &field.json).map(|field| field.shape);
            match found {
                Some(found) => self.of_shape(out, shape.unwrap_or(Shape::Any), found),
                None => self.unset(out, shape, field.unset),
            }
        }
    }

    fn metadata(&self, out: &mut String, id: TypeId, metadata: &Value) {
        let Some(Shape::Type(id)) = self.schema.field(id, "metadata").map(|field| field.shape)
        else {
            return;
        };
        if let Some(row) = self.rows.get(self.schema.type_name(id)) {
            self.fields(out, id, row, metadata);
        }
    }

    fn of_shape(&self, out: &mut String, shape: Shape, value: &Value) {
        match (shape, value) {
            (Shape::Type(id), value) => self.of_type(out, id, value),
            (Shape::List(item), Value::Array(values)) => {
                out.push('[');
                for (index, value) in values.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    self.of_shape(out, self.schema.shape(item), value);
                }
                out.push(']');
            }
            (Shape::Map(item), Value::Object(map)) => {
                out.push('{');
                for (index, (key, value)) in map.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    write_json(out, &key.as_str().into());
                    out.push(':');
                    self.of_shape(out, self.schema.shape(item), value);
                }
                out.push('}');
            }
            _ => write_json(out, value),
        }
    }

    /// Go's zero value: of a pointer, a list or a map it is null.
    fn unset(&self, out: &mut String, shape: Option<Shape>, code: &str) {
        match (code, shape) {
            ("s", _) => out.push_str("\"\""),
            ("0", _) => out.push('0'),
            ("f", _) => out.push_str("false"),
            ("q", _) => out.push_str("\"0\""),
            ("o", Some(Shape::Type(id))) => self.of_type(out, id, &Value::Object(Map::new())),
            _ => out.push_str("null"),
        }
    }

    /// A schema, or something else that stands for several or for none; false for other types.
    fn either(&self, out: &mut String, name: &str, value: &Value) -> bool {
        let Some(kind) = name
            .strip_suffix("OrArray")
            .map(|_| "JSONSchemas")
            .or(name.strip_suffix("OrStringArray").map(|_| "Property"))
        else {
            if !name.ends_with("JSONSchemaPropsOrBool") {
                return false;
            }
            let allows = value.as_bool().unwrap_or(true);
            out.push_str(if allows {
                "{\"Allows\":true"
            } else {
                "{\"Allows\":false"
            });
            out.push_str(",\"Schema\":");
            self.schema_or_null(out, name, value);
            out.push('}');
            return true;
        };
        out.push_str("{\"Schema\":");
        self.schema_or_null(out, name, value);
        out.push_str(",\"");
        out.push_str(kind);
        out.push_str("\":");
        match value {
            Value::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    if item.is_object() {
                        self.schema_or_null(out, name, item);
                    } else {
                        write_json(out, item);
                    }
                }
                out.push(']');
            }
            _ => out.push_str("null"),
        }
        out.push('}');
        true
    }

    /// `name` is that of the type that may be a schema: its own, with more behind it.
    fn schema_or_null(&self, out: &mut String, name: &str, value: &Value) {
        let end = name.rfind("Or").unwrap_or(name.len());
        match self.schema.find(&name[..end]) {
            Some(id) if value.is_object() => self.of_type(out, id, value),
            _ => out.push_str("null"),
        }
    }
}

/// A pod's spec with what the internal security context has more than the served one.
fn with_internal_context(spec: &Value) -> Value {
    let mut spec = spec.clone();
    json::default(&mut spec, "securityContext", Map::new());
    for field in HOST_FIELDS {
        if let Some(value) = spec.as_object_mut().and_then(|spec| spec.remove(field)) {
            spec["securityContext"][field] = value;
        }
    }
    spec
}

#[cfg(test)]
mod tests;
