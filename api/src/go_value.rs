//! A value as upstream's errors show it: the fields of a Go struct, by their Go names, in the order
//! of the struct, with all that is unset.
//!
//! Upstream validates internal types, whose fields have no JSON names. What is common to all
//! groups (`metav1`) keeps its JSON form there, and so it does here.

use crate::json;
use crate::protobuf::table::{self, Held, Table, Wire};
use crate::schema::{Field, Schema, Shape, TypeId, TypeKind, schema};
use serde_json::Value;
use std::fmt::Write;

/// Types whose internal form has its fields in another order than the served one.
const ORDERS: &[(&str, &[&str])] = &[
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion",
        &[
            "name",
            "served",
            "storage",
            "deprecated",
            "deprecationWarning",
            "schema",
            "subresources",
            "additionalPrinterColumns",
            "selectableFields",
        ],
    ),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps",
        &[
            "id",
            "$schema",
            "$ref",
            "description",
            "type",
            "nullable",
            "format",
            "title",
            "default",
            "maximum",
            "exclusiveMaximum",
            "minimum",
            "exclusiveMinimum",
            "maxLength",
            "minLength",
            "pattern",
            "maxItems",
            "minItems",
            "uniqueItems",
            "multipleOf",
            "enum",
            "maxProperties",
            "minProperties",
            "required",
            "items",
            "allOf",
            "oneOf",
            "anyOf",
            "not",
            "properties",
            "additionalProperties",
            "patternProperties",
            "dependencies",
            "additionalItems",
            "definitions",
            "externalDocs",
            "example",
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource",
            "x-kubernetes-int-or-string",
            "x-kubernetes-list-map-keys",
            "x-kubernetes-list-type",
            "x-kubernetes-map-type",
            "x-kubernetes-validations",
        ],
    ),
    (
        "io.k8s.api.core.v1.PersistentVolumeClaimSpec",
        &[
            "accessModes",
            "selector",
            "resources",
            "volumeName",
            "storageClassName",
            "volumeMode",
            "dataSource",
            "dataSourceRef",
            "volumeAttributesClassName",
        ],
    ),
    (
        "io.k8s.api.core.v1.ServicePort",
        &[
            "name",
            "protocol",
            "appProtocol",
            "port",
            "targetPort",
            "nodePort",
        ],
    ),
];

/// Words that Go writes in capitals at the beginning of a name.
const INITIALISMS: [&str; 15] = [
    "api", "cel", "id", "ip", "ips", "uid", "url", "uri", "cidr", "cpu", "tcp", "http", "dns",
    "csi", "nfs",
];

/// Compact JSON of a value of the named type.
pub fn internal(type_name: &str, value: &Value) -> String {
    let mut out = String::new();
    match schema().find(type_name) {
        Some(id) if !value.is_null() => write_type(&mut out, schema(), id, value),
        _ => out.push_str(&value.to_string()),
    }
    out
}

/// A list of values of the named type.
pub fn internal_list(type_name: &str, values: &[Value]) -> String {
    let texts: Vec<String> = values
        .iter()
        .map(|value| internal(type_name, value))
        .collect();
    format!("[{}]", texts.join(","))
}

fn write_type(out: &mut String, schema: &Schema, id: TypeId, value: &Value) {
    let name = schema.type_name(id);
    if schema.get(id).kind != TypeKind::Struct {
        out.push_str(&value.to_string());
        return;
    }
    let is_common = name.starts_with("io.k8s.apimachinery.");
    out.push('{');
    let mut comma = "";
    for field in ordered(schema, id) {
        let field_name = schema.text(field.name);
        if is_common && value.get(field_name).is_none_or(json::is_empty) && !field.required {
            continue;
        }
        // Embedded in Go, metadata shows its fields in its place.
        if let (Shape::Type(inner), "metadata", false) = (field.shape, field_name, is_common) {
            let before = out.len();
            write_type(
                out,
                schema,
                inner,
                value.get(field_name).unwrap_or(&json::NULL),
            );
            let inlined = out.split_off(before);
            let inlined = inlined
                .strip_prefix('{')
                .and_then(|rest| rest.strip_suffix('}'));
            let inlined = inlined.unwrap_or("");
            if !inlined.is_empty() {
                out.push_str(comma);
                out.push_str(inlined);
                comma = ",";
            }
            continue;
        }
        let shown = if is_common {
            field_name.to_owned()
        } else {
            go_name(field_name)
        };
        let _ = write!(out, "{comma}\"{shown}\":");
        comma = ",";
        match value.get(field_name).filter(|value| !value.is_null()) {
            Some(value) => write_shape(out, schema, field.shape, value),
            None => write_unset(out, schema, field),
        }
    }
    out.push('}');
}

/// The fields by number, or as told above.
fn ordered(schema: &Schema, id: TypeId) -> Vec<&Field> {
    let name = schema.type_name(id);
    if let Some((_, order)) = ORDERS.iter().find(|(known, _)| *known == name) {
        let fields = order.iter().filter_map(|field| schema.field(id, field));
        return fields.collect();
    }
    let mut numbered: Vec<(usize, &Field)> = Vec::new();
    let order = message_fields(table::table(), name);
    for field in schema.fields(id) {
        let name = schema.text(field.name);
        let place = order.iter().position(|known| *known == name);
        numbered.push((place.unwrap_or(usize::MAX), field));
    }
    numbered.sort_by_key(|(place, _)| *place);
    numbered.into_iter().map(|(_, field)| field).collect()
}

/// JSON names by field number, those of inlined messages in their place.
fn message_fields(table: &'static Table, name: &str) -> Vec<&'static str> {
    let mut names = Vec::new();
    let Some(id) = table.find(name) else {
        return names;
    };
    let mut fields: Vec<_> = table.fields(id).to_vec();
    fields.reverse();
    while let Some(field) = fields.pop() {
        match (field.held, field.wire) {
            (Held::Inline, Wire::Message(inner)) => {
                fields.extend(table.fields(inner).iter().rev().copied());
            }
            _ => names.push(field.name),
        }
    }
    names
}

fn write_shape(out: &mut String, schema: &Schema, shape: Shape, value: &Value) {
    match (shape, value) {
        (Shape::Type(id), value) => write_type(out, schema, id, value),
        (Shape::List(item), Value::Array(values)) => {
            out.push('[');
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_shape(out, schema, schema.shape(item), value);
            }
            out.push(']');
        }
        (Shape::Map(item), Value::Object(map)) => {
            out.push('{');
            for (index, (key, value)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                let _ = write!(out, "{}:", Value::from(key.as_str()));
                write_shape(out, schema, schema.shape(item), value);
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
}

/// Go's zero value: of a pointer, a list or a map it is null.
fn write_unset(out: &mut String, schema: &Schema, field: &Field) {
    let is_value = field.required || field.drops_zero;
    match field.shape {
        Shape::Type(id) if schema.text(field.default) == "{}" || field.required => {
            write_type(out, schema, id, &Value::Null);
        }
        Shape::String if is_value => out.push_str("\"\""),
        Shape::Int32 | Shape::Int64 | Shape::Double if is_value => out.push('0'),
        Shape::Bool if is_value => out.push_str("false"),
        _ => out.push_str("null"),
    }
}

/// `podIP` is `PodIP`, `apiVersion` is `APIVersion`.
fn go_name(json: &str) -> String {
    if json == "jsonPath" {
        return "JSONPath".to_owned();
    }
    if let Some(extension) = json.strip_prefix("x-kubernetes-") {
        let words = extension.split('-').map(go_name);
        return format!("X{}", words.collect::<String>());
    }
    let json = json.trim_start_matches('$');
    let end = json
        .find(|c: char| c.is_ascii_uppercase())
        .unwrap_or(json.len());
    let (first, rest) = json.split_at(end);
    let first = if INITIALISMS.contains(&first) {
        first.to_uppercase()
    } else {
        let mut letters = first.chars();
        let head = letters.next().map(|c| c.to_ascii_uppercase());
        head.into_iter().chain(letters).collect()
    };
    format!("{first}{rest}")
}

#[cfg(test)]
mod tests;
