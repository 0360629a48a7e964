//! Documents in protocol buffers: the form that Kubernetes' Go clients ask for.
//!
//! Field numbers are those of gnostic's `openapi.v2` and `openapi.v3` messages; only what our
//! documents hold is written. Anything without a field of its own goes over as YAML.

pub(super) mod v2;
pub(super) mod v3;

use serde_json::{Map, Value};

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

/// A message being written.
#[derive(Debug, Default)]
pub(super) struct Message(pub Vec<u8>);

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

    /// A flag that is written when it is false, too.
    fn always(&mut self, number: u64, flag: bool) {
        self.varint(number << 3 | VARINT);
        self.varint(flag.into());
    }

    fn double(&mut self, number: u64, value: f64) {
        self.varint(number << 3 | FIXED64);
        self.0.extend_from_slice(&value.to_bits().to_le_bytes());
    }

    /// Absent when it is no number.
    fn number(&mut self, number: u64, value: &Value) {
        if let Some(value) = value.as_f64() {
            self.double(number, value);
        }
    }

    /// Absent when it is no count.
    fn count(&mut self, number: u64, value: &Value) {
        if let Some(value) = value.as_u64() {
            self.varint(number << 3 | VARINT);
            self.varint(value);
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
    let mut text = String::new();
    yaml(value, 0, &mut text);
    message.bytes(2, text.as_bytes());
    message
}

/// As Go's encoder writes it: an item or a member a line.
fn yaml(value: &Value, indent: usize, out: &mut String) {
    let pad = |out: &mut String, width: usize| out.extend(std::iter::repeat_n(' ', width));
    match value {
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    pad(out, indent);
                }
                out.push_str("- ");
                yaml(item, indent + 2, out);
            }
        }
        Value::Object(members) if !members.is_empty() => {
            for (at, (name, value)) in members.iter().enumerate() {
                if at > 0 {
                    pad(out, indent);
                }
                scalar(name, out);
                let is_nested = match value {
                    Value::Array(items) => !items.is_empty(),
                    Value::Object(members) => !members.is_empty(),
                    _ => false,
                };
                if is_nested {
                    out.push_str(":\n");
                    pad(out, indent + 2);
                    yaml(value, indent + 2, out);
                } else {
                    out.push_str(": ");
                    yaml(value, 0, out);
                }
            }
        }
        Value::String(text) => {
            scalar(text, out);
            out.push('\n');
        }
        other => {
            out.push_str(&other.to_string());
            out.push('\n');
        }
    }
}

/// Plain where YAML reads it as the same text, else in quotes.
fn scalar(text: &str, out: &mut String) {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./ ,+".contains(c))
        && !text.ends_with(' ')
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false" | "null"
        );
    if is_plain {
        out.push_str(text);
    } else if text == "*" {
        out.push_str("'*'");
    } else {
        out.push_str(&Value::from(text).to_string());
    }
}
