//! `openapi.v3`.

use super::{Message, any, members, wrapped};
use serde_json::Value;

/// A `Document` of two parts that are written already.
pub(in crate::openapi) fn document(document: &Value, paths: &[u8], schemas: &[u8]) -> Vec<u8> {
    let mut message = Message::default();
    message.text(1, &document["openapi"]);
    let mut info = Message::default();
    info.text(1, &document["info"]["title"]);
    info.text(6, &document["info"]["version"]);
    message.message(2, &info);
    message.bytes(4, paths);
    let mut components = Message::default();
    if !schemas.is_empty() {
        components.bytes(1, schemas);
    }
    let mut schemes = Message::default();
    for (name, one) in members(&document["components"]["securitySchemes"]) {
        let mut scheme = Message::default();
        scheme.text(1, &one["type"]);
        scheme.text(2, &one["description"]);
        scheme.text(3, &one["name"]);
        scheme.text(4, &one["in"]);
        schemes.named(1, name, &wrapped(1, &scheme));
    }
    components.message(7, &schemes);
    message.message(5, &components);
    message.0
}

/// One entry of `Paths`.
pub(in crate::openapi) fn put_path(out: &mut Vec<u8>, name: &str, item: &Value) {
    let mut message = Message(std::mem::take(out));
    message.named(1, name, &path_item(item));
    *out = message.0;
}

/// One entry of `SchemasOrReferences`.
pub(in crate::openapi) fn put_schema(out: &mut Vec<u8>, name: &str, value: &Value) {
    let mut message = Message(std::mem::take(out));
    message.named(1, name, &schema(value));
    *out = message.0;
}

fn path_item(item: &Value) -> Message {
    let mut message = Message::default();
    let methods = [
        (4, "get"),
        (5, "put"),
        (6, "post"),
        (7, "delete"),
        (8, "options"),
        (9, "head"),
        (10, "patch"),
    ];
    for (number, method) in methods {
        if item[method].is_object() {
            message.message(number, &operation(&item[method]));
        }
    }
    for one in item["parameters"].as_array().into_iter().flatten() {
        message.message(13, &parameter(one));
    }
    message
}

fn operation(operation: &Value) -> Message {
    let mut message = Message::default();
    message.texts(1, &operation["tags"]);
    message.text(3, &operation["description"]);
    message.text(5, &operation["operationId"]);
    for one in operation["parameters"].as_array().into_iter().flatten() {
        message.message(6, &parameter(one));
    }
    if operation["requestBody"].is_object() {
        let mut body = Message::default();
        body.message(2, &content(&operation["requestBody"]["content"]));
        body.flag(3, &operation["requestBody"]["required"]);
        message.message(7, &wrapped(1, &body));
    }
    let mut responses = Message::default();
    for (code, response) in members(&operation["responses"]) {
        let mut value = Message::default();
        value.text(1, &response["description"]);
        if response["content"].is_object() {
            value.message(3, &content(&response["content"]));
        }
        responses.named(2, code, &wrapped(1, &value));
    }
    message.message(8, &responses);
    message.extensions(13, operation);
    message
}

/// `MediaTypes`.
fn content(content: &Value) -> Message {
    let mut types = Message::default();
    for (name, media) in members(content) {
        types.named(1, name, &wrapped(1, &schema(&media["schema"])));
    }
    types
}

/// `ParameterOrReference`.
fn parameter(parameter: &Value) -> Message {
    let mut message = Message::default();
    message.text(1, &parameter["name"]);
    message.text(2, &parameter["in"]);
    message.text(3, &parameter["description"]);
    message.flag(4, &parameter["required"]);
    message.message(10, &schema(&parameter["schema"]));
    wrapped(1, &message)
}

/// `SchemaOrReference`.
fn schema(value: &Value) -> Message {
    if value["$ref"].is_string() {
        let mut reference = Message::default();
        reference.text(1, &value["$ref"]);
        return wrapped(2, &reference);
    }
    wrapped(1, &plain_schema(value))
}

/// `Schema`.
fn plain_schema(value: &Value) -> Message {
    let mut message = Message::default();
    message.flag(1, &value["nullable"]);
    message.text(9, &value["title"]);
    message.number(10, &value["multipleOf"]);
    message.number(11, &value["maximum"]);
    message.flag(12, &value["exclusiveMaximum"]);
    message.number(13, &value["minimum"]);
    message.flag(14, &value["exclusiveMinimum"]);
    message.count(15, &value["maxLength"]);
    message.count(16, &value["minLength"]);
    message.text(17, &value["pattern"]);
    message.count(18, &value["maxItems"]);
    message.count(19, &value["minItems"]);
    message.flag(20, &value["uniqueItems"]);
    message.count(21, &value["maxProperties"]);
    message.count(22, &value["minProperties"]);
    message.texts(23, &value["required"]);
    for one in value["enum"].as_array().into_iter().flatten() {
        message.message(24, &any(one));
    }
    message.text(25, &value["type"]);
    for (number, name) in [(26, "allOf"), (27, "oneOf"), (28, "anyOf")] {
        for one in value[name].as_array().into_iter().flatten() {
            message.message(number, &schema(one));
        }
    }
    if value["not"].is_object() {
        message.message(29, &plain_schema(&value["not"]));
    }
    if value["items"].is_object() {
        message.message(30, &wrapped(1, &schema(&value["items"])));
    }
    if value["properties"].is_object() {
        let mut properties = Message::default();
        for (name, property) in members(&value["properties"]) {
            properties.named(1, name, &schema(property));
        }
        message.message(31, &properties);
    }
    if value["additionalProperties"].is_object() {
        let values = schema(&value["additionalProperties"]);
        message.message(32, &wrapped(1, &values));
    } else if let Some(flag) = value["additionalProperties"].as_bool() {
        let mut open = Message::default();
        open.always(2, flag);
        message.message(32, &open);
    }
    if let Some(default) = value.get("default") {
        message.message(33, &default_type(default));
    }
    message.text(34, &value["description"]);
    message.text(35, &value["format"]);
    message.extensions(36, value);
    message
}

/// `DefaultType`, which has no form for a default that is an object.
fn default_type(default: &Value) -> Message {
    let mut message = Message::default();
    match default {
        Value::Number(number) => message.double(1, number.as_f64().unwrap_or_default()),
        Value::Bool(flag) => message.always(2, *flag),
        Value::String(text) => message.bytes(3, text.as_bytes()),
        _ => {}
    }
    message
}
