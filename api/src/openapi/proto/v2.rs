//! `openapi.v2`.

use super::{Message, any, members, wrapped};
use serde_json::Value;

/// A `Document` of two parts that are written already.
pub(in crate::openapi) fn document(document: &Value, paths: &[u8], definitions: &[u8]) -> Vec<u8> {
    let mut message = Message::default();
    message.text(1, &document["swagger"]);
    let mut info = Message::default();
    info.text(1, &document["info"]["title"]);
    info.text(2, &document["info"]["version"]);
    message.message(2, &info);
    message.bytes(8, paths);
    message.bytes(9, definitions);
    let mut parameters = Message::default();
    for (name, one) in members(&document["parameters"]) {
        parameters.named(1, name, &plain_parameter(one));
    }
    message.message(10, &parameters);
    for requirement in document["security"].as_array().into_iter().flatten() {
        let mut all = Message::default();
        for (name, _) in members(requirement) {
            all.named(1, name, &Message::default());
        }
        message.message(12, &all);
    }
    let mut definitions = Message::default();
    for (name, one) in members(&document["securityDefinitions"]) {
        let mut key = Message::default();
        key.text(1, &one["type"]);
        key.text(2, &one["name"]);
        key.text(3, &one["in"]);
        key.text(4, &one["description"]);
        definitions.named(1, name, &wrapped(2, &key));
    }
    message.message(13, &definitions);
    message.0
}

/// One entry of `Paths`.
pub(in crate::openapi) fn put_path(out: &mut Vec<u8>, name: &str, item: &Value) {
    put(out, 2, name, &path_item(item));
}

/// One entry of `Definitions`.
pub(in crate::openapi) fn put_schema(out: &mut Vec<u8>, name: &str, definition: &Value) {
    put(out, 1, name, &schema(definition));
}

fn put(out: &mut Vec<u8>, number: u64, name: &str, value: &Message) {
    let mut message = Message(std::mem::take(out));
    message.named(number, name, value);
    *out = message.0;
}

fn path_item(item: &Value) -> Message {
    let mut message = Message::default();
    let methods = [
        (2, "get"),
        (3, "put"),
        (4, "post"),
        (5, "delete"),
        (6, "options"),
        (7, "head"),
        (8, "patch"),
    ];
    for (number, method) in methods {
        if item[method].is_object() {
            message.message(number, &operation(&item[method]));
        }
    }
    for one in item["parameters"].as_array().into_iter().flatten() {
        message.message(9, &parameter(one));
    }
    message
}

fn operation(operation: &Value) -> Message {
    let mut message = Message::default();
    message.texts(1, &operation["tags"]);
    message.text(3, &operation["description"]);
    message.text(5, &operation["operationId"]);
    message.texts(6, &operation["produces"]);
    message.texts(7, &operation["consumes"]);
    for one in operation["parameters"].as_array().into_iter().flatten() {
        message.message(8, &parameter(one));
    }
    let mut responses = Message::default();
    for (code, response) in members(&operation["responses"]) {
        let mut value = Message::default();
        value.text(1, &response["description"]);
        if response["schema"].is_object() {
            value.message(2, &wrapped(1, &schema(&response["schema"])));
        }
        responses.named(1, code, &wrapped(1, &value));
    }
    message.message(9, &responses);
    message.texts(10, &operation["schemes"]);
    message.extensions(13, operation);
    message
}

/// `ParametersItem`.
fn parameter(parameter: &Value) -> Message {
    if parameter["$ref"].is_string() {
        let mut reference = Message::default();
        reference.text(1, &parameter["$ref"]);
        return wrapped(2, &reference);
    }
    wrapped(1, &plain_parameter(parameter))
}

/// `Parameter`.
fn plain_parameter(parameter: &Value) -> Message {
    let mut message = Message::default();
    let place = parameter["in"].as_str().unwrap_or("");
    if place == "body" {
        message.text(1, &parameter["description"]);
        message.text(2, &parameter["name"]);
        message.text(3, &parameter["in"]);
        message.flag(4, &parameter["required"]);
        message.message(5, &schema(&parameter["schema"]));
        return wrapped(1, &message);
    }
    message.flag(1, &parameter["required"]);
    message.text(2, &parameter["in"]);
    message.text(3, &parameter["description"]);
    message.text(4, &parameter["name"]);
    let (kind, unique, sub_schema) = if place == "path" {
        (5, 19, 4)
    } else {
        (6, 20, 3)
    };
    message.text(kind, &parameter["type"]);
    message.flag(unique, &parameter["uniqueItems"]);
    wrapped(2, &wrapped(sub_schema, &message))
}

fn schema(value: &Value) -> Message {
    let mut message = Message::default();
    message.text(1, &value["$ref"]);
    message.text(2, &value["format"]);
    message.text(3, &value["title"]);
    message.text(4, &value["description"]);
    if let Some(default) = value.get("default") {
        message.message(5, &any(default));
    }
    message.number(6, &value["multipleOf"]);
    message.number(7, &value["maximum"]);
    message.flag(8, &value["exclusiveMaximum"]);
    message.number(9, &value["minimum"]);
    message.flag(10, &value["exclusiveMinimum"]);
    message.count(11, &value["maxLength"]);
    message.count(12, &value["minLength"]);
    message.text(13, &value["pattern"]);
    message.count(14, &value["maxItems"]);
    message.count(15, &value["minItems"]);
    message.flag(16, &value["uniqueItems"]);
    message.count(17, &value["maxProperties"]);
    message.count(18, &value["minProperties"]);
    message.texts(19, &value["required"]);
    for one in value["enum"].as_array().into_iter().flatten() {
        message.message(20, &any(one));
    }
    if value["additionalProperties"].is_object() {
        message.message(21, &wrapped(1, &schema(&value["additionalProperties"])));
    } else if let Some(flag) = value["additionalProperties"].as_bool() {
        let mut open = Message::default();
        open.always(2, flag);
        message.message(21, &open);
    }
    if value["type"].is_string() {
        let mut kind = Message::default();
        kind.text(1, &value["type"]);
        message.message(22, &kind);
    }
    if value["items"].is_object() {
        message.message(23, &wrapped(1, &schema(&value["items"])));
    }
    if value["properties"].is_object() {
        let mut properties = Message::default();
        for (name, property) in members(&value["properties"]) {
            properties.named(1, name, &schema(property));
        }
        message.message(25, &properties);
    }
    message.extensions(31, value);
    message
}
