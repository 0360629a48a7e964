//! The words of Go's decoders: type names, syntax errors, times, base64.

use crate::schema::{Schema, Shape};
use crate::timestamp;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use base64::prelude::BASE64_STANDARD;
use std::fmt::Write;

/// What upstream looks for `apiVersion` and `kind` with; the texts for a body that is no object
/// name it.
pub(super) const TYPE_META: &str = "struct { \
     APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
     Kind string \"json:\\\"kind,omitempty\\\"\" }";

/// How many bytes of a bad body the answer shows.
const SUMMARY_BYTES_MAX: usize = 30;

/// Go's `%q`.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            '\0'..=' ' | '\x7f' if c != ' ' => {
                put(&mut out, format_args!("\\x{:02x}", u32::from(c)))
            }
            // What Rust shows as it is, Go does too: both ask whether it can be printed.
            c if c.is_ascii() || c.escape_debug().count() == 1 => out.push(c),
            c if u32::from(c) > 0xffff => put(&mut out, format_args!("\\U{:08x}", u32::from(c))),
            c => put(&mut out, format_args!("\\u{:04x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String takes all");
}

/// As Go's package `time` quotes: bytes that are not plain ASCII in hexadecimal.
pub(crate) fn time_quoted(text: &str) -> String {
    let mut out = String::from('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..0x80 => out.push(char::from(byte)),
            _ => put(&mut out, format_args!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
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

/// A syntax error of serde_json in Go's words.
pub(super) fn syntax(error: &serde_json::Error, bytes: &[u8]) -> String {
    if let Some(text) = super::syntax::error(bytes) {
        return text;
    }
    let text = error.to_string();
    if text.starts_with("recursion limit") {
        return "exceeded max depth".into();
    }
    if text.starts_with("invalid type") {
        return "json: ".to_owned() + &text;
    }
    text
}

/// As Go's `base64.StdEncoding`, which skips line ends.
fn check_base64(text: &str) -> Result<(), String> {
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

/// Base64 as Go writes it again: without line ends, and without bits that stand for nothing.
/// `None` when the text is that already.
pub(super) fn base64(text: &str) -> Result<Option<String>, String> {
    check_base64(text)?;
    let digits = text.trim_end_matches('=');
    let free_bits = match text.len() - digits.len() {
        0 => 0,
        1 => 0b11,
        _ => 0b1111,
    };
    let last = digits.bytes().last().map_or(0, base64_value);
    if last & free_bits == 0 && !text.contains(['\r', '\n']) {
        return Ok(None);
    }
    let digits: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let bytes = LENIENT.decode(digits).map_err(|error| error.to_string())?;
    Ok(Some(BASE64_STANDARD.encode(bytes)))
}

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

fn base64_value(digit: u8) -> u8 {
    match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        _ => 63,
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
    let head = format!(
        "parsing time {} as {}",
        time_quoted(text),
        time_quoted(layout)
    );
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
                time_quoted(rest),
                time_quoted(element)
            );
        }
        rest = &rest[element.len()..];
    }
    if layout.contains(".000000") {
        let digits = rest.bytes().skip(1).take_while(u8::is_ascii_digit).count();
        if !rest.starts_with('.') || digits < 6 {
            return format!("{head}: cannot parse {} as \".000000\"", time_quoted(rest));
        }
        rest = &rest[7..];
    } else if let Some(fraction) = rest.strip_prefix('.') {
        rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    if !matches!(rest.as_bytes(), [b'Z'] | [b'+' | b'-', _, _, b':', _, _]) {
        if let Some(extra) = rest.strip_prefix('Z') {
            return format!("{head}: extra text: {}", time_quoted(extra));
        }
        return format!("{head}: cannot parse {} as \"Z07:00\"", time_quoted(rest));
    }
    let number = |range: std::ops::Range<usize>| text[range].parse::<u8>().unwrap_or(0);
    let part = match () {
        () if !(1..=12).contains(&number(5..7)) => "month",
        () if number(11..13) > 23 => "hour",
        () if number(14..16) > 59 => "minute",
        () if number(17..19) > 59 => "second",
        () => "day",
    };
    format!("parsing time {}: {part} out of range", time_quoted(text))
}
