//! Field paths and field errors, in the words of upstream's `field.Error`.
//!
//! A validation gathers all its errors in one list; the list becomes one 422 `Status` whose
//! causes carry the same texts.

use serde_json::Value;
use std::fmt;

/// Where in an object: `spec.containers[0].name`, `metadata.labels[app]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(String);

impl Path {
    pub fn root(name: &str) -> Self {
        Self(name.to_owned())
    }

    pub fn child(&self, name: &str) -> Self {
        if self.0.is_empty() {
            Self(name.to_owned())
        } else {
            Self(format!("{}.{name}", self.0))
        }
    }

    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is wrong with a field. The `reason` strings are those of a Status cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldErrorKind {
    NotFound,
    Required,
    Duplicate,
    Invalid,
    NotSupported,
    Forbidden,
    TooLong,
    TooMany,
    TypeInvalid,
    InternalError,
}

impl FieldErrorKind {
    /// `reason` of the cause on the wire.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::InternalError => "InternalError",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::InternalError => "Internal error",
        }
    }

    fn shows_value(self) -> bool {
        !matches!(
            self,
            Self::Required | Self::Forbidden | Self::TooLong | Self::TooMany | Self::InternalError
        )
    }
}

/// One thing wrong with one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    pub kind: FieldErrorKind,
    pub path: Path,
    pub value: Value,
    /// True where the text says what is wrong without saying what was found.
    pub omits_value: bool,
    /// The value in the form in which the error shows it, where that is not its JSON.
    pub shown: Option<String>,
    pub detail: String,
}

impl FieldError {
    fn new(kind: FieldErrorKind, path: &Path, value: Value, detail: impl Into<String>) -> Self {
        Self {
            kind,
            path: path.clone(),
            value,
            omits_value: false,
            shown: None,
            detail: detail.into(),
        }
    }

    pub fn required(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, path, Value::Null, detail)
    }

    pub fn invalid(path: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, path, value.into(), detail)
    }

    /// As `invalid`, for a value that is too large or of no use in the text.
    pub fn invalid_unshown(path: &Path, detail: impl Into<String>) -> Self {
        Self {
            omits_value: true,
            ..Self::invalid(path, Value::Null, detail)
        }
    }

    pub fn type_invalid(path: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::TypeInvalid, path, value.into(), detail)
    }

    pub fn internal(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::InternalError, path, Value::Null, detail)
    }

    pub fn duplicate(path: &Path, value: impl Into<Value>) -> Self {
        Self::new(FieldErrorKind::Duplicate, path, value.into(), "")
    }

    pub fn not_found(path: &Path, value: impl Into<Value>) -> Self {
        Self::new(FieldErrorKind::NotFound, path, value.into(), "")
    }

    pub fn forbidden(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, path, Value::Null, detail)
    }

    /// `supported` is sorted by the caller, as upstream lists it.
    pub fn not_supported(path: &Path, value: impl Into<Value>, supported: &[&str]) -> Self {
        let detail = if supported.is_empty() {
            String::new()
        } else {
            let quoted: Vec<String> = supported.iter().map(|s| format!("\"{s}\"")).collect();
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(FieldErrorKind::NotSupported, path, value.into(), detail)
    }

    pub fn too_long(path: &Path, bytes_max: usize) -> Self {
        let plural = if bytes_max == 1 { "" } else { "s" };
        let detail = format!("may not be more than {bytes_max} byte{plural}");
        Self::new(FieldErrorKind::TooLong, path, Value::Null, detail)
    }

    pub fn too_many(path: &Path, actual: usize, max: usize) -> Self {
        let plural = if max == 1 { "" } else { "s" };
        let detail = format!("must have at most {max} item{plural}");
        Self::new(FieldErrorKind::TooMany, path, actual.into(), detail)
    }

    /// Shows the value, one of the named type, as Go shows it.
    #[must_use]
    pub fn as_go(mut self, type_name: &str) -> Self {
        self.shown = Some(crate::go_value::internal(type_name, &self.value));
        self
    }

    /// Shows a text in the place of the value.
    #[must_use]
    pub fn shown_as(mut self, text: impl Into<String>) -> Self {
        self.shown = Some(text.into());
        self
    }

    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// The error without its path, as it stands in a Status cause.
    pub fn body(&self) -> String {
        let words = self.kind.words();
        let mut text = match (self.kind, &self.value) {
            (FieldErrorKind::TooMany, Value::Number(n)) => format!("{words}: {n}"),
            (kind, value) if kind.shows_value() && !self.omits_value => {
                let text = self.shown.clone().unwrap_or_else(|| shown(value));
                format!("{words}: {text}")
            }
            _ => words.to_owned(),
        };
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

/// Strings in Go's quotes, everything else as the JSON that Go writes.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => crate::decode::quoted(text),
        other => {
            let mut text = String::new();
            crate::apply::value::write(&mut text, other);
            text
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

/// All that is wrong with one object.
pub type ErrorList = Vec<FieldError>;
