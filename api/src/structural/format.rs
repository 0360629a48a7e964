//! Strings of a format: those that a structural schema may name for strings.
//!
//! What is of a format is what upstream's `kube-openapi` takes for it, which is at times more and at
//! times less than the name says: `my-host` is no `hostname`, and `a:` is a `uri`.

mod email; // Addresses as Go's `net/mail` reads them.
mod number; // Numbers of books and cards, with their sums.
mod time; // Dates, times of day and durations.

use super::{Fault, Found};
use crate::{go_regexp, json, names, url};
use regex::Regex;
use serde_json::Value;
use std::net::Ipv6Addr;
use std::sync::OnceLock;

const HOSTNAME_BYTES_MAX: usize = 255;
const HOSTNAME_PART_BYTES_MAX: usize = 63;

enum Rule {
    Pattern(Pattern),
    Check(fn(&str) -> bool),
}

/// In Go's syntax, compiled when first asked.
struct Pattern {
    text: &'static str,
    compiled: OnceLock<Regex>,
}

impl Pattern {
    const fn new(text: &'static str) -> Self {
        let compiled = OnceLock::new();
        Self { text, compiled }
    }

    fn regex(&self) -> &Regex {
        self.compiled.get_or_init(|| {
            go_regexp::compile(self.text).expect("patterns of formats are tried in tests")
        })
    }

    fn is_match(&self, text: &str) -> bool {
        self.regex().is_match(text)
    }
}

const fn pattern(text: &'static str) -> Rule {
    Rule::Pattern(Pattern::new(text))
}

/// By name, without dashes.
static FORMATS: [(&str, Rule); 26] = [
    ("bsonobjectid", pattern("^[0-9a-fA-F]{24}$")),
    (
        "byte",
        // None of no bytes at all, and bits beyond the last byte may be set.
        pattern("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"),
    ),
    ("cidr", Rule::Check(names::is_sloppy_range)),
    ("creditcard", Rule::Check(number::is_credit_card)),
    ("date", Rule::Check(time::is_date)),
    ("datetime", Rule::Check(time::is_date_time)),
    ("duration", Rule::Check(time::is_duration)),
    ("email", Rule::Check(email::is_address)),
    ("hexcolor", pattern("^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$")),
    ("hostname", Rule::Check(is_hostname)),
    (
        "ipv4",
        Rule::Check(|text| text.contains('.') && names::sloppy_ip(text).is_some()),
    ),
    ("ipv6", Rule::Check(|text| text.parse::<Ipv6Addr>().is_ok())),
    (
        "isbn",
        Rule::Check(|text| number::is_isbn10(text) || number::is_isbn13(text)),
    ),
    ("isbn10", Rule::Check(number::is_isbn10)),
    ("isbn13", Rule::Check(number::is_isbn13)),
    (
        "k8slongname",
        Rule::Check(|text| names::dns_subdomain(text).is_empty()),
    ),
    (
        "k8sshortname",
        Rule::Check(|text| names::dns_label(text).is_empty()),
    ),
    ("mac", Rule::Check(is_mac)),
    ("password", Rule::Check(|_| true)),
    (
        "rgbcolor",
        pattern(concat!(
            r"^rgb\(\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*",
            r"(?:,\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*){2}\)$"
        )),
    ),
    // Eleven characters, whatever their pattern would take: with both separators.
    ("ssn", pattern(r"^\d{3}[- ]\d{2}[- ]\d{4}$")),
    ("uri", Rule::Check(url::is_of_request)),
    (
        "uuid",
        pattern("(?i)^[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$"),
    ),
    (
        "uuid3",
        pattern("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    ),
    (
        "uuid4",
        pattern("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
    ),
    (
        "uuid5",
        pattern("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
    ),
];

fn find(format: &str) -> Option<&'static Rule> {
    let name = format.replace('-', "");
    let found = FORMATS.iter().find(|(known, _)| *known == name);
    found.map(|(_, rule)| rule)
}

/// Whether anything is known of strings of the format.
pub fn is_known(format: &str) -> bool {
    !format.is_empty() && find(format).is_some()
}

/// Whether a string is of a format that is known.
pub fn fits(format: &str, text: &str) -> bool {
    find(format).is_some_and(|rule| rule.fits(text))
}

pub fn check(schema: &Value, text: &str, at: &str) -> Found {
    let format = json::text(schema, "format");
    match find(format) {
        Some(rule) if !rule.fits(text) => Found::of(Fault::of_type(at, format, text)),
        _ => Found::default(),
    }
}

impl Rule {
    fn fits(&self, text: &str) -> bool {
        match self {
            Self::Pattern(pattern) => pattern.is_match(text),
            Self::Check(fits) => fits(text),
        }
    }
}

/// One part with a dash behind its first character at most, or several of which the last is of
/// letters. Letters and symbols are those of Unicode.
fn is_hostname(text: &str) -> bool {
    static PATTERN: Pattern = Pattern::new(concat!(
        r"^(?:[a-zA-Z0-9\p{S}\p{L}]-?[a-zA-Z0-9\p{S}\p{L}]*|",
        r"(?:[a-zA-Z0-9\p{S}\p{L}](?:[a-zA-Z0-9-\p{S}\p{L}]*[a-zA-Z0-9\p{S}\p{L}])?\.)+",
        r"[a-zA-Z\p{L}]{2,})$"
    ));
    text.len() <= HOSTNAME_BYTES_MAX
        && text
            .split('.')
            .all(|part| part.len() <= HOSTNAME_PART_BYTES_MAX)
        && PATTERN.is_match(text)
}

/// Six, eight or twenty bytes, with colons, dashes or dots between.
fn is_mac(text: &str) -> bool {
    let by = |separator: char, digits: usize, counts: &[usize]| {
        let parts: Vec<&str> = text.split(separator).collect();
        let is_part =
            |part: &&str| part.len() == digits && part.bytes().all(|b| b.is_ascii_hexdigit());
        counts.contains(&parts.len()) && parts.iter().all(is_part)
    };
    by(':', 2, &[6, 8, 20]) || by('-', 2, &[6, 8, 20]) || by('.', 4, &[3, 4, 10])
}

#[cfg(test)]
mod tests;
