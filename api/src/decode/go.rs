//! The words of Go's decoders: type names, syntax errors, times, base64.

use crate::schema::{Schema, Shape};
use crate::timestamp;
use serde_json::error::Category;
use std::fmt::Write;

/// What upstream looks for `apiVersion` and `kind` with; the texts for a body that is no object
/// name it.
pub(super) const TYPE_META: &str = "struct { \
     APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
     Kind string \"json:\\\"kind,omitempty\\\"\" }";

/// How many bytes of a bad body the answer shows.
const SUMMARY_BYTES_MAX: usize = 30;

/// Go's `%q` for the texts that occur here.
pub(super) fn quoted(text: &str) -> String {
    format!("{text:?}")
}

/// `int32`, `[]v1.Container`, `map[string]string`.
pub(super) fn type_name(schema: &Schema, shape: Shape) -> String {
    match shape {
        Shape::String => "string".into(),
        Shape::Bytes => "[]uint8".into(),
        Shape::Int32 => "int32".into(),
        Shape::Int64 => "int64".into(),
        Shape::Double => "float64".into(),
        Shape::Bool => "bool".into(),
        Shape::Any => "interface {}".into(),
        Shape::List(item) => format!("[]{}", type_name(schema, schema.shape(item))),
        Shape::Map(value) => format!("map[string]{}", type_name(schema, schema.shape(value))),
        Shape::Type(id) => {
            let name = schema.type_name(id);
            match name.rsplit('.').next() {
                // Their decoders take a string or a number apart from the rest.
                Some("Time" | "MicroTime") => "string".into(),
                Some("IntOrString") => "int32".into(),
                _ => {
                    let from = name
                        .rmatch_indices('.')
                        .nth(1)
                        .map_or(0, |(dot, _)| dot + 1);
                    name[from..].to_owned()
                }
            }
        }
    }
}

/// The first bytes of a body as upstream appends them: in hexadecimal unless it looks like JSON.
pub(super) fn summary(body: &[u8]) -> String {
    let shown = &body[..body.len().min(SUMMARY_BYTES_MAX)];
    let mut text = String::new();
    match body.first() {
        None => text.push_str("<empty>"),
        Some(b'{') => text.push_str(&String::from_utf8_lossy(shown)),
        Some(_) => {
            for byte in shown {
                write!(text, "{byte:02x}").expect("a String takes all");
            }
        }
    }
    if body.len() > SUMMARY_BYTES_MAX {
        text.push_str(" ...");
    }
    text
}

/// A syntax error of serde_json in Go's words, as near as it can be told.
pub(super) fn syntax(error: &serde_json::Error, bytes: &[u8]) -> String {
    if error.classify() == Category::Eof {
        return "unexpected end of JSON input".into();
    }
    let text = error.to_string();
    let place = if text.starts_with("recursion limit") {
        return "exceeded max depth".into();
    } else if text.starts_with("expected value") {
        "looking for beginning of value"
    } else if text.starts_with("key must be a string") || text.starts_with("trailing comma") {
        "looking for beginning of object key string"
    } else if text.starts_with("expected `:`") {
        "after object key"
    } else if text.starts_with("expected `,` or `}`") {
        "after object key:value pair"
    } else if text.starts_with("expected `,` or `]`") {
        "after array element"
    } else if text.starts_with("trailing characters") {
        "after top-level value"
    } else if text.starts_with("invalid type") {
        return "json: ".to_owned() + &text;
    } else {
        return text;
    };
    match byte_at(error, bytes) {
        Some(b'\'') => format!("invalid character '\\'' {place}"),
        Some(byte) if byte.is_ascii_graphic() || byte == b' ' => {
            format!("invalid character '{}' {place}", char::from(byte))
        }
        Some(byte) => format!("invalid character '\\x{byte:02x}' {place}"),
        None => text,
    }
}

/// The byte that the error stands at.
fn byte_at(error: &serde_json::Error, bytes: &[u8]) -> Option<u8> {
    let line = bytes
        .split(|byte| *byte == b'\n')
        .nth(error.line().checked_sub(1)?)?;
    match error.column() {
        0 => Some(b'\n'),
        column => line.get(column - 1).copied(),
    }
}

/// As Go's `base64.StdEncoding`, which skips line ends.
pub(super) fn check_base64(text: &str) -> Result<(), String> {
    let mut digits = 0usize;
    let mut padding = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\r' | b'\n' => {}
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' if padding == 0 => digits += 1,
            b'=' if padding < 2 && digits % 4 >= 2 && !(digits + padding).is_multiple_of(4) => {
                padding += 1
            }
            _ => return Err(format!("illegal base64 data at input byte {at}")),
        }
    }
    if (digits + padding).is_multiple_of(4) {
        Ok(())
    } else {
        Err(format!("illegal base64 data at input byte {}", text.len()))
    }
}

/// A metav1.Time in canonical form, or Go's parse error.
pub(super) fn time(text: &str) -> Result<String, String> {
    match timestamp::parse(text) {
        Some(at) => Ok(timestamp::format_time(at)),
        None => Err(time_error(text, "2006-01-02T15:04:05Z07:00")),
    }
}

/// A metav1.MicroTime: exactly six digits of fraction.
pub(super) fn micro_time(text: &str) -> Result<String, String> {
    let fraction = text.split_once('.').map_or("", |(_, rest)| rest);
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    match timestamp::parse(text) {
        Some(at) if digits == 6 => Ok(timestamp::format_micro_time(at)),
        _ => Err(time_error(text, "2006-01-02T15:04:05.000000Z07:00")),
    }
}

/// Walks the layout to the element that does not fit.
fn time_error(text: &str, layout: &str) -> String {
    let head = format!("parsing time {} as {}", quoted(text), quoted(layout));
    let mut rest = text;
    let elements = [
        "2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05",
    ];
    for element in elements {
        let fits = rest.get(..element.len()).is_some_and(|piece| {
            let digits = element.as_bytes()[0].is_ascii_digit();
            if digits {
                piece.bytes().all(|b| b.is_ascii_digit())
            } else {
                piece == element
            }
        });
        if !fits {
            return format!(
                "{head}: cannot parse {} as {}",
                quoted(rest),
                quoted(element)
            );
        }
        rest = &rest[element.len()..];
    }
    if layout.contains(".000000") {
        let digits = rest.bytes().skip(1).take_while(u8::is_ascii_digit).count();
        if !rest.starts_with('.') || digits < 6 {
            return format!("{head}: cannot parse {} as \".000000\"", quoted(rest));
        }
        rest = &rest[7..];
    } else if let Some(fraction) = rest.strip_prefix('.') {
        rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    if !matches!(rest.as_bytes(), [b'Z'] | [b'+' | b'-', _, _, b':', _, _]) {
        if let Some(extra) = rest.strip_prefix('Z') {
            return format!("{head}: extra text: {}", quoted(extra));
        }
        return format!("{head}: cannot parse {} as \"Z07:00\"", quoted(rest));
    }
    let number = |range: std::ops::Range<usize>| text[range].parse::<u8>().unwrap_or(0);
    let part = match () {
        () if !(1..=12).contains(&number(5..7)) => "month",
        () if number(11..13) > 23 => "hour",
        () if number(14..16) > 59 => "minute",
        () if number(17..19) > 59 => "second",
        () => "day",
    };
    format!("parsing time {}: {part} out of range", quoted(text))
}
