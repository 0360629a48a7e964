//! Documents as YAML, in the style of upstream: sorted keys, lists as far in as their key.
//!
//! Texts that a reader of YAML 1.1 could take for something else (numbers, dates, `yes`) are
//! quoted: that is what most readers are.

use serde_json::{Map, Value};
use std::fmt::Write;

const STEP: usize = 2;

pub fn document(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => mapping(map, 0, false, &mut out),
        Value::Array(list) if !list.is_empty() => sequence(list, 0, false, &mut out),
        Value::String(own) => {
            quoted(own, &mut out);
            out.push('\n');
        }
        other => scalar_line(other, 0, &mut out),
    }
    out
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', depth));
}

/// `inline`: the first line goes on behind a dash.
fn mapping(map: &Map<String, Value>, depth: usize, inline: bool, out: &mut String) {
    let mut keys: Vec<&String> = map.keys().collect();
    keys.sort_unstable();
    for (place, key) in keys.into_iter().enumerate() {
        if place > 0 || !inline {
            indent(depth, out);
        }
        text(key, None, out);
        out.push(':');
        match &map[key] {
            Value::Object(inner) if !inner.is_empty() => {
                out.push('\n');
                mapping(inner, depth + STEP, false, out);
            }
            Value::Array(inner) if !inner.is_empty() => {
                out.push('\n');
                sequence(inner, depth, false, out);
            }
            other => {
                out.push(' ');
                scalar_line(other, depth + STEP, out);
            }
        }
    }
}

fn sequence(list: &[Value], depth: usize, inline: bool, out: &mut String) {
    for (place, item) in list.iter().enumerate() {
        if place > 0 || !inline {
            indent(depth, out);
        }
        out.push_str("- ");
        match item {
            Value::Object(inner) if !inner.is_empty() => mapping(inner, depth + STEP, true, out),
            Value::Array(inner) if !inner.is_empty() => sequence(inner, depth + STEP, true, out),
            other => scalar_line(other, depth + STEP, out),
        }
    }
}

fn scalar_line(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::String(own) => text(own, Some(depth), out),
        Value::Object(_) => out.push_str("{}"),
        Value::Array(_) => out.push_str("[]"),
        other => {
            // Writing into a text cannot fail.
            let _ = write!(out, "{other}");
        }
    }
    out.push('\n');
}

/// `block` is how far in the lines of a block would stand, where one may.
fn text(own: &str, block: Option<usize>, out: &mut String) {
    let is_special = own.chars().any(|one| is_special(one) && one != '\n');
    match block {
        _ if is_special || is_ambiguous(own) => quoted(own, out),
        Some(depth) if is_block(own) => literal(own, depth, out),
        _ if own.contains('\n') => quoted(own, out),
        _ if is_plain(own) => out.push_str(own),
        _ => {
            out.push('\'');
            out.push_str(&own.replace('\'', "''"));
            out.push('\'');
        }
    }
}

fn is_special(one: char) -> bool {
    one.is_control() || matches!(one, '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{85}')
}

fn quoted(own: &str, out: &mut String) {
    out.push('"');
    for one in own.chars() {
        let _ = match one {
            '"' => out.write_str("\\\""),
            '\\' => out.write_str("\\\\"),
            '\n' => out.write_str("\\n"),
            '\t' => out.write_str("\\t"),
            '\r' => out.write_str("\\r"),
            other if is_special(other) && u32::from(other) < 0x100 => {
                write!(out, "\\x{:02X}", u32::from(other))
            }
            other if is_special(other) => write!(out, "\\u{:04X}", u32::from(other)),
            other => out.write_char(other),
        };
    }
    out.push('"');
}

/// Lines that need no more than to be set in.
fn is_block(own: &str) -> bool {
    own.contains('\n') && !own.starts_with([' ', '\n']) && !own.ends_with(' ')
}

fn literal(own: &str, depth: usize, out: &mut String) {
    out.push('|');
    let body = own.strip_suffix('\n');
    match body {
        None => out.push('-'),
        Some(body) if body.is_empty() || body.ends_with('\n') => out.push('+'),
        Some(_) => {}
    }
    for line in body.unwrap_or(own).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            indent(depth, out);
            out.push_str(line);
        }
    }
}

/// Whether the text may stand without quotes, as far as its characters go.
fn is_plain(own: &str) -> bool {
    let bytes = own.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    let starts = match first {
        b'-' | b'?' | b':' => bytes.get(1).is_some_and(|next| *next != b' '),
        b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\''
        | b'"' | b'%' | b'@' | b'`' | b' ' => false,
        _ => true,
    };
    starts
        && !matches!(last, b' ' | b':')
        && !own.contains(": ")
        && !own.contains(" #")
        && !own.starts_with("---")
        && !own.starts_with("...")
}

/// Whether a reader could take the text for no text.
fn is_ambiguous(own: &str) -> bool {
    const WORDS: [&str; 14] = [
        "", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "<<", "=", ".nan",
    ];
    let is_word = |word: &str| own.eq_ignore_ascii_case(word);
    if WORDS.iter().any(|word| is_word(word)) {
        return true;
    }
    let unsigned = own.strip_prefix(['-', '+']).unwrap_or(own);
    if unsigned.eq_ignore_ascii_case(".inf") {
        return true;
    }
    let starts = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    unsigned.as_bytes().first().is_some_and(starts)
        && (is_number(unsigned) || is_sexagesimal(unsigned) || is_date(own))
}

fn is_number(unsigned: &str) -> bool {
    let digits: String = unsigned.chars().filter(|one| *one != '_').collect();
    let of = |text: &str, base: u32| !text.is_empty() && text.chars().all(|one| one.is_digit(base));
    match digits.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => return of(&digits[2..], 16),
        Some("0b") => return of(&digits[2..], 2),
        Some("0o") => return of(&digits[2..], 8),
        _ => {}
    }
    digits.chars().any(|one| one.is_ascii_digit()) && digits.parse::<f64>().is_ok()
}

/// `1:30` is ninety to YAML 1.1.
fn is_sexagesimal(unsigned: &str) -> bool {
    let mut parts = unsigned.split(':');
    let digits = |text: &str| {
        !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit() || one == b'_')
    };
    let first = parts.next().is_some_and(digits);
    let mut count = 0;
    let rest = parts.all(|part| {
        count += 1;
        part.bytes()
            .all(|one| one.is_ascii_digit() || matches!(one, b'.' | b'_'))
            && !part.is_empty()
    });
    first && rest && count > 0
}

fn is_date(own: &str) -> bool {
    let bytes = own.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes
            .get(range)
            .is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    digits(0..4) && bytes.get(4) == Some(&b'-') && digits(5..6)
}

#[cfg(test)]
mod tests;
