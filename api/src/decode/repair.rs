//! What Go's decoder takes and ours does not: escapes of half a character, and numbers beyond a
//! double.
//!
//! Go puts U+FFFD in place of the one and keeps the other as it is written. Such documents are
//! written anew before they are decoded; all others are never looked at.

/// The largest double: a number beyond it fits no field either.
const LARGEST: &str = "1.7976931348623157e308";

/// A document of correct syntax without what our decoder stumbles over; `None` when it has none
/// of it.
pub(super) fn repaired(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len());
    let (mut at, mut is_changed) = (0, false);
    while let Some(byte) = bytes.get(at) {
        let end = match byte {
            b'"' => {
                let end = string_end(bytes, at);
                is_changed |= put_string(&bytes[at..end], &mut out);
                end
            }
            b'-' | b'0'..=b'9' => {
                let end = number_end(bytes, at);
                is_changed |= put_number(&bytes[at..end], &mut out);
                end
            }
            _ => {
                out.push(*byte);
                at + 1
            }
        };
        at = end;
    }
    is_changed.then_some(out)
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn number_end(bytes: &[u8], start: usize) -> usize {
    let is_part = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
    let length = bytes[start..].iter().take_while(|byte| is_part(byte));
    start + length.count()
}

fn put_number(text: &[u8], out: &mut Vec<u8>) -> bool {
    let number = std::str::from_utf8(text).ok();
    let number = number.and_then(|text| text.parse::<f64>().ok());
    match number {
        Some(number) if number.is_infinite() => {
            if number < 0.0 {
                out.push(b'-');
            }
            out.extend_from_slice(LARGEST.as_bytes());
            true
        }
        _ => {
            out.extend_from_slice(text);
            false
        }
    }
}

/// Copies a string; halves of surrogate pairs become U+FFFD.
fn put_string(text: &[u8], out: &mut Vec<u8>) -> bool {
    let (mut at, mut is_changed) = (0, false);
    while let Some(byte) = text.get(at) {
        if *byte != b'\\' {
            out.push(*byte);
            at += 1;
            continue;
        }
        let length = match (unit(text, at), unit(text, at + 6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => 12,
            (Some(0xd800..0xe000), _) => {
                out.extend_from_slice(b"\\ufffd");
                is_changed = true;
                at += 6;
                continue;
            }
            (Some(_), _) => 6,
            (None, _) => 2,
        };
        let end = (at + length).min(text.len());
        out.extend_from_slice(&text[at..end]);
        at = end;
    }
    is_changed
}

/// The code unit of an escape `\uXXXX` at this place.
fn unit(text: &[u8], at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
