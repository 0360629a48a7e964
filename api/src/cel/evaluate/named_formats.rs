//! Formats of names that strings are held against: `format.dns1123Label().validate(text)`.

use super::Fault;
use super::machine::{Machine, Outcome};
use super::value::Val;
use crate::structural::fits_format;
use crate::{names, url};

/// A pattern as upstream estimates the longest of them.
const COST_PER_BYTE: u64 = 6;

/// Its place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedFormat(usize);

type Check = fn(&str) -> Vec<String>;

const FORMATS: [(&str, Check); 13] = [
    ("byte", |text| other(text, "byte", "invalid base64")),
    ("date", |text| other(text, "date", "invalid date")),
    ("datetime", |text| {
        other(text, "datetime", "invalid datetime")
    }),
    ("dns1035Label", names::dns_1035_label),
    ("dns1035LabelPrefix", |text| {
        names::dns_1035_label(&prefix(text))
    }),
    ("dns1123Label", names::dns_label),
    ("dns1123LabelPrefix", |text| names::dns_label(&prefix(text))),
    ("dns1123Subdomain", names::dns_subdomain),
    ("dns1123SubdomainPrefix", |text| {
        names::dns_subdomain(&prefix(text))
    }),
    ("labelValue", names::label_value),
    ("qualifiedName", names::qualified_name),
    ("uri", uri),
    ("uuid", |text| {
        other(text, "uuid", "does not match the UUID format")
    }),
];

/// A name to which something is going to be added may end with a dash.
fn prefix(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(before) if !before.is_empty() => format!("{before}a"),
        _ => text.to_owned(),
    }
}

fn other(text: &str, format: &str, why: &str) -> Vec<String> {
    if fits_format(format, text) {
        Vec::new()
    } else {
        vec![why.to_owned()]
    }
}

fn uri(text: &str) -> Vec<String> {
    if url::is_of_request(text) {
        return Vec::new();
    }
    let why = if text.is_empty() {
        "empty url"
    } else {
        "invalid URI for request"
    };
    vec![format!("parse {text:?}: {why}")]
}

/// `format.dns1123Label()` and `format.named('dns1123Label')`.
pub fn find<'a>(name: &str, arguments: &[Val<'a>]) -> Option<Val<'a>> {
    let find = |name: &str| {
        let mut all = FORMATS.iter();
        let place = all.position(|(known, _)| *known == name)?;
        Some(Val::Format(NamedFormat(place)))
    };
    match (name, arguments) {
        ("named", [Val::Text(name)]) => Some(match find(name) {
            Some(format) => Val::some(format),
            None => Val::Optional(None),
        }),
        (name, []) => find(name),
        _ => None,
    }
}

/// Nothing, or what is wrong.
pub fn validate<'a>(machine: &mut Machine<'a>, format: NamedFormat, text: &str) -> Outcome<'a> {
    machine.spend((text.len() as u64 + 1).saturating_mul(COST_PER_BYTE))?;
    let check = FORMATS.get(format.0).map(|(_, check)| check);
    let errors = check.ok_or_else(Fault::overload)?(text);
    if errors.is_empty() {
        return Ok(Val::Optional(None));
    }
    let errors = errors.into_iter().map(Val::own_text).collect();
    Ok(Val::some(Val::own_list(errors)))
}
