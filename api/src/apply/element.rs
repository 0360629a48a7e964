//! One step of a field path: a field, an item of a list by its keys or its value, an index.
//!
//! Ordered, compared, written and read as upstream's `fieldpath` does: fields before keys before
//! values before indexes, numbers by their size. Borrows from the object that it points into.

use super::value;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Write};

/// The fields that identify an item of a list, sorted by name.
pub type Keys<'a> = Vec<(Cow<'a, str>, Cow<'a, Value>)>;

#[derive(Clone, Debug)]
pub enum Element<'a> {
    /// `f:name`
    Field(Cow<'a, str>),
    /// `k:{"containerPort":80,"protocol":"TCP"}`
    Key(Keys<'a>),
    /// `v:"kubernetes"`
    Value(Cow<'a, Value>),
    /// `i:0`
    Index(i64),
}

/// A step that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parsing key as path element: {0}")]
pub struct ElementError(String);

impl<'a> Element<'a> {
    pub fn field(name: &'a str) -> Self {
        Self::Field(Cow::Borrowed(name))
    }

    /// Reads `f:name` and its like; `None` for a kind of step that a later version may know.
    pub fn parse(text: &'a str) -> Result<Option<Self>, ElementError> {
        let bytes = text.as_bytes();
        if bytes.len() < 2 {
            return Err(ElementError("key must be 2 characters long:".to_owned()));
        }
        if bytes[1] != b':' {
            return Err(ElementError(format!("missing colon: {text}")));
        }
        let rest = &text[2..];
        let bad = |error: &dyn fmt::Display| ElementError(error.to_string());
        Ok(Some(match bytes[0] {
            b'f' => Self::field(rest),
            b'v' => Self::Value(Cow::Owned(
                serde_json::from_str(rest).map_err(|error| bad(&error))?,
            )),
            b'k' => {
                let keys: Map<String, Value> =
                    serde_json::from_str(rest).map_err(|error| bad(&error))?;
                let owned = keys
                    .into_iter()
                    .map(|(k, v)| (Cow::Owned(k), Cow::Owned(v)));
                Self::Key(owned.collect())
            }
            b'i' => Self::Index(rest.parse().map_err(|error| bad(&error))?),
            _ => return Ok(None),
        }))
    }

    /// `f:name` and its like: the key of a `fieldsV1` document.
    pub fn to_text(&self) -> String {
        match self {
            Self::Field(name) => {
                let mut text = String::with_capacity(name.len() + 2);
                text.push_str("f:");
                text.push_str(name);
                text
            }
            Self::Key(keys) => {
                let mut text = String::with_capacity(32);
                text.push_str("k:{");
                for (index, (name, value)) in keys.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    value::write_string(&mut text, name);
                    text.push(':');
                    value::write(&mut text, value);
                }
                text.push('}');
                text
            }
            Self::Value(found) => {
                let mut text = "v:".to_owned();
                value::write(&mut text, found);
                text
            }
            Self::Index(index) => format!("i:{index}"),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }

    pub fn into_owned(self) -> Element<'static> {
        match self {
            Self::Field(name) => Element::Field(Cow::Owned(name.into_owned())),
            Self::Key(keys) => Element::Key(
                keys.into_iter()
                    .map(|(name, value)| {
                        (
                            Cow::Owned(name.into_owned()),
                            Cow::Owned(value.into_owned()),
                        )
                    })
                    .collect(),
            ),
            Self::Value(value) => Element::Value(Cow::Owned(value.into_owned())),
            Self::Index(index) => Element::Index(index),
        }
    }
}

impl Ord for Element<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => {
                for ((a_name, a_value), (b_name, b_value)) in a.iter().zip(b) {
                    let order = a_name
                        .cmp(b_name)
                        .then_with(|| value::compare(a_value, b_value));
                    if order.is_ne() {
                        return order;
                    }
                }
                a.len().cmp(&b.len())
            }
            (Self::Value(a), Self::Value(b)) => value::compare(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Element<'_> {}

/// As messages show a step: `.name`, `[name="web"]`, `[="a"]`, `[0]`.
impl fmt::Display for Element<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                f.write_char('[')?;
                for (index, (name, value)) in keys.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", value::shown(value))?;
                }
                f.write_char(']')
            }
            Self::Value(value) => write!(f, "[={}]", value::shown(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}
