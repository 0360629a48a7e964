//! Strings of a format: those that a structural schema may name for strings.

use super::{Fault, Found};
use crate::{json, names, url};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::civil::Date;
use serde_json::Value;

type Check = fn(&str) -> bool;

/// By name, without dashes.
const FORMATS: [(&str, Check); 26] = [
    ("bsonobjectid", |text| is_hex(text, 24)),
    ("byte", |text| {
        !text.is_empty() && BASE64_STANDARD.decode(text).is_ok()
    }),
    ("cidr", |text| has_no_errors(&names::cidr(text))),
    ("creditcard", is_credit_card),
    ("date", is_date),
    ("datetime", is_date_time),
    ("duration", is_duration),
    ("email", is_email),
    ("hexcolor", is_hex_color),
    ("hostname", is_hostname),
    ("ipv4", |text| {
        text.contains('.') && has_no_errors(&names::ip(text))
    }),
    ("ipv6", |text| {
        text.contains(':') && has_no_errors(&names::ip(text))
    }),
    ("isbn", |text| is_isbn10(text) || is_isbn13(text)),
    ("isbn10", is_isbn10),
    ("isbn13", is_isbn13),
    ("k8slongname", |text| {
        text.len() <= 253 && text.split('.').all(is_short_name)
    }),
    ("k8sshortname", |text| {
        text.len() <= 63 && is_short_name(text)
    }),
    ("mac", is_mac),
    ("password", |_| true),
    ("rgbcolor", is_rgb_color),
    ("ssn", is_ssn),
    ("uri", |text| {
        (text.starts_with('/') || text.contains(':')) && url::parse(text).is_ok()
    }),
    ("uuid", |text| is_uuid(text, None)),
    ("uuid3", |text| is_uuid(text, Some('3'))),
    ("uuid4", |text| is_uuid(text, Some('4'))),
    ("uuid5", |text| is_uuid(text, Some('5'))),
];

fn find(format: &str) -> Option<Check> {
    let name = format.replace('-', "");
    let found = FORMATS.iter().find(|(known, _)| *known == name);
    found.map(|(_, check)| *check)
}

/// Whether anything is known of strings of the format.
pub fn is_known(format: &str) -> bool {
    !format.is_empty() && find(format).is_some()
}

pub fn check(schema: &Value, text: &str, at: &str) -> Found {
    let format = json::text(schema, "format");
    match find(format) {
        Some(fits) if !fits(text) => Found::of(Fault::of_type(at, format, text)),
        _ => Found::default(),
    }
}

fn has_no_errors(errors: &[String]) -> bool {
    errors.is_empty()
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_short_name(text: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
        && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<Date>().is_ok()
}

/// `2006-01-02T15:04:05.000Z`, in small letters or capitals.
fn is_date_time(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let Some((date, time)) = text.split_once('t') else {
        return false;
    };
    let Some((clock, rest)) = time.split_at_checked(8) else {
        return false;
    };
    let is_pair = |part: &str, max: &str| {
        part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit()) && part <= max
    };
    let is_clock = match clock.split(':').collect::<Vec<_>>()[..] {
        [hours, minutes, seconds] => {
            is_pair(hours, "23") && is_pair(minutes, "59") && is_pair(seconds, "59")
        }
        _ => false,
    };
    let fraction = rest.strip_prefix('.').map(|rest| {
        let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        (digits.len() < rest.len()).then_some(digits)
    });
    let zone = match fraction {
        Some(None) => return false,
        Some(Some(zone)) => zone,
        None => rest,
    };
    let is_offset = |zone: &str| {
        let offset = zone.strip_prefix(['+', '-']);
        let pair = offset.and_then(|offset| offset.split_once(':'));
        pair.is_some_and(|(hours, minutes)| is_pair(hours, "99") && is_pair(minutes, "99"))
    };
    is_date(date) && is_clock && (zone == "z" || is_offset(zone))
}

/// Go's durations, `1h30m`, and numbers with the name of a unit, `3 days`.
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 28] = [
        "ns",
        "nano",
        "nanos",
        "nanosecond",
        "nanoseconds",
        "us",
        "µs",
        "micro",
        "micros",
        "microsecond",
        "ms",
        "milli",
        "millis",
        "millisecond",
        "s",
        "sec",
        "secs",
        "second",
        "m",
        "min",
        "mins",
        "minute",
        "h",
        "hr",
        "hour",
        "d",
        "day",
        "w",
    ];
    let text = text.trim_start_matches(['-', '+']);
    if text == "0" {
        return true;
    }
    let mut rest = text;
    let mut seen = false;
    while !rest.is_empty() {
        let unit = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        if unit.len() == rest.len() {
            return false;
        }
        let unit = unit.trim_start();
        let end = unit
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(unit.len());
        let name = unit[..end].trim().to_lowercase();
        let is_week = name == "weeks" || name == "week";
        if !is_week
            && !UNITS
                .iter()
                .any(|known| name == *known || name == format!("{known}s"))
        {
            return false;
        }
        seen = true;
        rest = &unit[end..];
    }
    seen
}

fn is_email(text: &str) -> bool {
    let address = match (text.rfind('<'), text.strip_suffix('>')) {
        (Some(start), Some(inner)) => &inner[start + 1..],
        _ => text,
    };
    let is_atom = |part: &str| {
        let allowed = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c);
        !part.is_empty() && part.chars().all(allowed)
    };
    address.rsplit_once('@').is_some_and(|(local, domain)| {
        let is_quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
        (is_quoted || local.split('.').all(is_atom)) && domain.split('.').all(is_atom)
    })
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    is_hex(digits, 3) || is_hex(digits, 6)
}

fn is_rgb_color(text: &str) -> bool {
    let inner = text
        .strip_prefix("rgb(")
        .and_then(|rest| rest.strip_suffix(')'));
    let parts = inner.map(|inner| inner.split(',').map(str::trim).collect::<Vec<_>>());
    let is_byte = |part: &&str| part.parse::<u8>().is_ok() && !part.starts_with('+');
    parts.is_some_and(|parts| parts.len() == 3 && parts.iter().all(is_byte))
}

fn is_hostname(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let in_part = |c: char| c.is_alphanumeric() || c == '-' || (!c.is_ascii() && !c.is_control());
    let is_part = |part: &&str| {
        !part.is_empty()
            && part.len() <= 63
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.chars().all(in_part)
    };
    let top = parts.last().copied().unwrap_or("");
    let is_top = parts.len() == 1 || top.len() >= 2 && top.chars().all(char::is_alphabetic);
    text.len() <= 255 && is_top && parts.iter().all(is_part)
}

/// Six, eight or twenty bytes, with colons, dashes or dots between.
fn is_mac(text: &str) -> bool {
    let by = |separator: char, digits: usize, counts: &[usize]| {
        let parts: Vec<&str> = text.split(separator).collect();
        counts.contains(&parts.len()) && parts.iter().all(|part| is_hex(part, digits))
    };
    by(':', 2, &[6, 8, 20]) || by('-', 2, &[6, 8, 20]) || by('.', 4, &[3, 4, 10])
}

/// The version stands thirteenth; that of version 4 and 5 has a variant as well.
fn is_uuid(text: &str, version: Option<char>) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let has_form = groups.len() == 1 || groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]);
    let digits: String = groups.concat().to_ascii_lowercase();
    let at = |index: usize| digits.chars().nth(index);
    let is_version = version.is_none_or(|version| {
        let has_variant = at(16).is_some_and(|digit| "89ab".contains(digit));
        at(12) == Some(version) && (version == '3' || has_variant)
    });
    has_form && is_hex(&digits, 32) && is_version
}

fn is_ssn(text: &str) -> bool {
    let groups: Vec<&str> = text.split(['-', ' ']).collect();
    let digits = groups.concat();
    let is_number = digits.len() == 9 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number && (groups.len() == 1 || groups.iter().map(|one| one.len()).eq([3, 2, 4]))
}

fn digits_of(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '-' | ' ')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let text = digits_of(text);
    let weights = (1..=10u32).rev();
    let values = text.chars().enumerate().map(|(index, c)| match c {
        'X' if index == 9 => Some(10),
        other => other.to_digit(10),
    });
    let sum: Option<u32> = values
        .zip(weights)
        .map(|(value, weight)| Some(value? * weight))
        .sum();
    text.len() == 10 && sum.is_some_and(|sum| sum % 11 == 0)
}

fn is_isbn13(text: &str) -> bool {
    let text = digits_of(text);
    let values = text.chars().enumerate();
    let sum: Option<u32> = values
        .map(|(index, c)| Some(c.to_digit(10)? * if index % 2 == 0 { 1 } else { 3 }))
        .sum();
    text.len() == 13 && sum.is_some_and(|sum| sum % 10 == 0)
}

/// Luhn's sum.
fn is_credit_card(text: &str) -> bool {
    let text = digits_of(text);
    let values = text.chars().rev().enumerate();
    let sum: Option<u32> = values
        .map(|(index, c)| {
            let digit = c.to_digit(10)?;
            let twice = digit * 2;
            Some(match index % 2 {
                0 => digit,
                _ => twice / 10 + twice % 10,
            })
        })
        .sum();
    (13..=19).contains(&text.len()) && sum.is_some_and(|sum| sum % 10 == 0)
}
