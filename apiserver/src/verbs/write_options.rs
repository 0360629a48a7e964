//! The options of create, update, patch and apply, checked, in upstream's words.

use super::asked::Asked;
use crate::query::Query;
use coracle_api::decode::FieldValidation;
use coracle_api::field::{ErrorList, FieldError, Path};
use coracle_api::status::{Status, Subject};
use http::header::USER_AGENT;

/// Upstream's bound on the name of a manager.
const MANAGER_BYTES_MAX: usize = 128;

/// Which options are read, by what is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Create,
    Update,
    Patch,
    Apply,
}

#[derive(Clone, Debug)]
pub struct WriteOptions {
    pub dry_run: bool,
    pub field_validation: FieldValidation,
    /// Who manages what is written: as given, else what the client calls itself.
    pub manager: String,
    /// An apply takes fields from other managers.
    pub force: bool,
}

impl WriteOptions {
    pub fn parse(asked: &Asked<'_>, kind: Kind) -> Result<Self, Status> {
        let query = &asked.query;
        let given = query.text("fieldManager");
        let force = boolean(query, "force");
        let mut errors = ErrorList::new();
        if kind == Kind::Apply && given.is_empty() {
            let path = Path::root("fieldManager");
            errors.push(FieldError::required(&path, "is required for apply patch"));
        }
        if kind == Kind::Patch && force.is_some() {
            let why = "may not be specified for non-apply patch";
            errors.push(FieldError::forbidden(&Path::root("force"), why));
        }
        errors.extend(manager_errors(given, &Path::root("fieldManager")));
        let runs: Vec<&str> = query.all("dryRun").collect();
        if runs.iter().any(|run| *run != "All") {
            let path = Path::root("dryRun");
            let shown = serde_json::Value::from(runs.clone());
            errors.push(FieldError::not_supported(&path, shown, &["All"]));
        }
        let text = query.text("fieldValidation");
        let field_validation = validation(text).unwrap_or_else(|| {
            let supported = ["", "Ignore", "Strict", "Warn"];
            let path = Path::root("fieldValidation");
            errors.push(FieldError::not_supported(&path, text, &supported));
            FieldValidation::Warn
        });
        if !errors.is_empty() {
            let subject = Subject {
                group: "meta.k8s.io",
                resource: match kind {
                    Kind::Create => "CreateOptions",
                    Kind::Update => "UpdateOptions",
                    Kind::Patch | Kind::Apply => "PatchOptions",
                },
                name: "",
            };
            return Err(Status::invalid(subject, &errors));
        }
        Ok(Self {
            dry_run: !runs.is_empty(),
            field_validation,
            manager: if given.is_empty() {
                client_name(asked)
            } else {
                given.to_owned()
            },
            force: force.unwrap_or(false),
        })
    }
}

/// As upstream reads a flag: all but a plain no is a yes.
fn boolean(query: &Query, name: &str) -> Option<bool> {
    let text = query.get(name)?;
    Some(!text.eq_ignore_ascii_case("false") && text != "0")
}

fn validation(text: &str) -> Option<FieldValidation> {
    Some(match text {
        "" | "Warn" => FieldValidation::Warn,
        "Strict" => FieldValidation::Strict,
        "Ignore" => FieldValidation::Ignore,
        _ => return None,
    })
}

/// What is wrong with the name of a manager.
fn manager_errors(manager: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if manager.len() > MANAGER_BYTES_MAX {
        errors.push(FieldError::too_long(path, MANAGER_BYTES_MAX));
    }
    for (at, letter) in manager
        .char_indices()
        .filter(|(_, one)| !is_printable(*one))
    {
        let number = u32::from(letter);
        let why = format!("invalid character U+{number:04X} (at position {at})");
        errors.push(FieldError::invalid(path, manager, why));
    }
    errors
}

/// Letters, marks, numbers, punctuation, symbols, and the space.
fn is_printable(letter: char) -> bool {
    match letter {
        ' ' => true,
        _ if letter.is_whitespace() || letter.is_control() => false,
        // What Rust would show by its number is nothing to print.
        _ => !letter.escape_debug().to_string().starts_with("\\u{") || is_mark(letter),
    }
}

/// Combining marks, which are printed although they are escaped.
fn is_mark(letter: char) -> bool {
    matches!(u32::from(letter), 0x300..=0x36f | 0x483..=0x489 | 0x591..=0x5c7 | 0x610..=0x61a
        | 0x64b..=0x65f | 0x900..=0x903 | 0x93a..=0x94f | 0x1ab0..=0x1aff | 0x20d0..=0x20f0
        | 0xfe00..=0xfe0f | 0xfe20..=0xfe2f)
}

/// What stands before the slash in `kubectl/v1.36 (linux/amd64)`.
fn client_name(asked: &Asked<'_>) -> String {
    let agent = asked.request.headers.get(USER_AGENT);
    let agent = agent.map_or(&[][..], |value| value.as_bytes());
    let agent = String::from_utf8_lossy(agent);
    let first = agent.split('/').next().unwrap_or("");
    let mut name = String::new();
    for letter in first.chars().filter(|letter| is_printable(*letter)) {
        if name.len() + letter.len_utf8() > MANAGER_BYTES_MAX {
            break;
        }
        name.push(letter);
    }
    name
}
