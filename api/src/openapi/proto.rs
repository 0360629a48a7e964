//! The v2 document in protocol buffers: the form that Kubernetes' Go clients ask for.
//!
//! Field numbers are those of gnostic's `openapi.v2` messages; only what our documents hold is
//! written. Anything without a field of its own goes over as YAML, of which JSON is a part.

use serde_json::{Map, Value};

const VARINT: u64 = 0;
const BYTES: u64 = 2;

/// A message being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn bytes(&mut self, number: u64, bytes: &[u8]) {
        self.varint(number << 3 | BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, number: u64, message: &Message) {
        self.bytes(number, &message.0);
    }

    /// Absent when it is no text, or an empty one.
    fn text(&mut self, number: u64, value: &Value) {
        if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
            self.bytes(number, text.as_bytes());
        }
    }

    fn texts(&mut self, number: u64, values: &Value) {
        for text in values
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            self.bytes(number, text.as_bytes());
        }
    }

    fn flag(&mut self, number: u64, value: &Value) {
        if value.as_bool() == Some(true) {
            self.varint(number << 3 | VARINT);
            self.varint(1);
        }
    }

    /// A message with a name in 1 and a value in 2.
    fn named(&mut self, number: u64, name: &str, value: &Message) {
        let mut named = Message::default();
        named.bytes(1, name.as_bytes());
        named.message(2, value);
        self.message(number, &named);
    }

    /// The `x-` members of an object.
    fn extensions(&mut self, number: u64, object: &Value) {
        for (name, value) in members(object).filter(|member| member.0.starts_with("x-")) {
            self.named(number, name, &any(value));
        }
    }
}

fn members(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flat_map(Map::iter)
}

/// One message inside another.
fn wrapped(number: u64, inner: &Message) -> Message {
    let mut outer = Message::default();
    outer.message(number, inner);
    outer
}

fn any(value: &Value) -> Message {
    let mut message = Message::default();
    message.bytes(2, value.to_string().as_bytes());
    message
}

/// `Document`.
pub(super) fn document(document: &Value) -> Vec<u8> {
    let mut message = Message::default();
    message.text(1, &document["swagger"]);
    let mut info = Message::default();
    info.text(1, &document["info"]["title"]);
    info.text(2, &document["info"]["version"]);
    message.message(2, &info);
    let mut paths = Message::default();
    for (path, item) in members(&document["paths"]) {
        paths.named(2, path, &path_item(item));
    }
    message.message(8, &paths);
    let mut definitions = Message::default();
    for (name, definition) in members(&document["definitions"]) {
        definitions.named(1, name, &schema(definition));
    }
    message.message(9, &definitions);
    message.0
}

fn path_item(item: &Value) -> Message {
    let mut message = Message::default();
    let methods = [
        (2, "get"),
        (3, "put"),
        (4, "post"),
        (5, "delete"),
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
    let mut message = Message::default();
    let place = parameter["in"].as_str().unwrap_or("");
    if place == "body" {
        message.text(1, &parameter["description"]);
        message.text(2, &parameter["name"]);
        message.text(3, &parameter["in"]);
        message.flag(4, &parameter["required"]);
        message.message(5, &schema(&parameter["schema"]));
        return wrapped(1, &wrapped(1, &message));
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
    wrapped(1, &wrapped(2, &wrapped(sub_schema, &message)))
}

fn schema(value: &Value) -> Message {
    let mut message = Message::default();
    message.text(1, &value["$ref"]);
    message.text(2, &value["format"]);
    message.text(4, &value["description"]);
    if let Some(default) = value.get("default") {
        message.message(5, &any(default));
    }
    message.texts(19, &value["required"]);
    for one in value["enum"].as_array().into_iter().flatten() {
        message.message(20, &any(one));
    }
    if value["additionalProperties"].is_object() {
        message.message(21, &wrapped(1, &schema(&value["additionalProperties"])));
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
