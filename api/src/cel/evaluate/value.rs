//! What expressions give: values of their own, and values of JSON where they are.

use super::access::Asking;
use super::amounts::Semver;
use super::named_formats::NamedFormat;
use super::network::Cidr;
use crate::quantity::Quantity;
use crate::url::Url;
use cel::common::ast::LiteralValue;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::ops::Deref;
use std::rc::Rc;

#[derive(Clone, Debug)]
pub enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'a>),
    Bytes(Rc<[u8]>),
    List(Rc<Vec<Val<'a>>>),
    Map(Rc<BTreeMap<Key<'a>, Val<'a>>>),
    /// A map that gives an empty one where it has nothing.
    Domains(Rc<BTreeMap<Key<'a>, Val<'a>>>),
    /// A struct that has a name.
    Made(Rc<Made<'a>>),
    /// An array or an object.
    Json(&'a Value),
    /// Nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    Type(Rc<str>),
    Optional(Option<Rc<Val<'a>>>),
    Quantity(Quantity),
    Semver(Rc<Semver>),
    Ip(IpAddr),
    Cidr(Cidr),
    Url(Rc<Url>),
    Format(NamedFormat),
    Asking(Rc<Asking>),
    /// The variables of the policy, which are not known until they are named.
    Variables,
}

#[derive(Clone)]
pub enum Text<'a> {
    There(&'a str),
    Own(Rc<str>),
}

#[derive(Debug)]
pub struct Made<'a> {
    pub of: &'a str,
    pub fields: BTreeMap<&'a str, Val<'a>>,
}

/// A key of a map. Whole numbers are equal whatever their type.
#[derive(Clone, Debug)]
pub enum Key<'a> {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Text(Text<'a>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::There(text) => text,
            Self::Own(text) => text,
        }
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let number = |key: &Self| match key {
            Key::Int(number) => Some(i128::from(*number)),
            Key::Uint(number) => Some(i128::from(*number)),
            _ => None,
        };
        let rank = |key: &Self| match key {
            Key::Bool(_) => 0,
            Key::Int(_) | Key::Uint(_) => 1,
            Key::Text(_) => 2,
        };
        match (self, other) {
            (Key::Bool(a), Key::Bool(b)) => a.cmp(b),
            (Key::Text(a), Key::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            _ => rank(self)
                .cmp(&rank(other))
                .then_with(|| number(self).cmp(&number(other))),
        }
    }
}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key<'_> {}

impl<'a> Key<'a> {
    /// `None` for what is no key.
    pub fn of(value: &Val<'a>) -> Option<Self> {
        Some(match value {
            Val::Bool(is_true) => Key::Bool(*is_true),
            Val::Int(number) => Key::Int(*number),
            Val::Uint(number) => Key::Uint(*number),
            Val::Double(number) => Key::Int(whole(*number)?),
            Val::Text(text) => Key::Text(text.clone()),
            _ => return None,
        })
    }

    pub fn value(&self) -> Val<'a> {
        match self {
            Key::Bool(is_true) => Val::Bool(*is_true),
            Key::Int(number) => Val::Int(*number),
            Key::Uint(number) => Val::Uint(*number),
            Key::Text(text) => Val::Text(text.clone()),
        }
    }
}

/// A double that is a whole number.
pub fn whole(number: f64) -> Option<i64> {
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    let is_whole = number.fract() == 0.0 && number.abs() <= LIMIT;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
    is_whole.then_some(number as i64)
}

/// A list, wherever it is.
#[derive(Clone, Copy, Debug)]
pub enum List<'v, 'a> {
    Own(&'v [Val<'a>]),
    There(&'a [Value]),
}

impl<'v, 'a: 'v> List<'v, 'a> {
    pub fn len(self) -> usize {
        match self {
            Self::Own(all) => all.len(),
            Self::There(all) => all.len(),
        }
    }

    pub fn get(self, index: usize) -> Option<Val<'a>> {
        match self {
            Self::Own(all) => all.get(index).cloned(),
            Self::There(all) => all.get(index).map(Val::of),
        }
    }

    pub fn iter(self) -> impl DoubleEndedIterator<Item = Val<'a>> + use<'v, 'a> {
        (0..self.len()).filter_map(move |index| self.get(index))
    }
}

/// A map, wherever it is.
#[derive(Clone, Copy, Debug)]
pub enum Table<'v, 'a> {
    Own(&'v BTreeMap<Key<'a>, Val<'a>>),
    There(&'a Map<String, Value>),
    Made(&'v Made<'a>),
}

impl<'v, 'a: 'v> Table<'v, 'a> {
    pub fn len(self) -> usize {
        match self {
            Self::Own(all) => all.len(),
            Self::There(all) => all.len(),
            Self::Made(made) => made.fields.len(),
        }
    }

    pub fn get(self, key: &Key<'a>) -> Option<Val<'a>> {
        match (self, key) {
            (Self::Own(all), key) => all.get(key).cloned(),
            (Self::There(all), Key::Text(text)) => all.get(&**text).map(Val::of),
            (Self::Made(made), Key::Text(text)) => made.fields.get(&**text).cloned(),
            _ => None,
        }
    }

    pub fn field(self, name: &'a str) -> Option<Val<'a>> {
        self.get(&Key::Text(Text::There(name)))
    }

    pub fn entries(self) -> Vec<(Key<'a>, Val<'a>)> {
        let there = |name: &'a str| Key::Text(Text::There(name));
        match self {
            Self::Own(all) => all
                .iter()
                .map(|(key, one)| (key.clone(), one.clone()))
                .collect(),
            Self::There(all) => {
                let all = all.iter();
                all.map(|(name, one)| (there(name), Val::of(one))).collect()
            }
            Self::Made(made) => {
                let all = made.fields.iter();
                all.map(|(name, one)| (there(name), one.clone())).collect()
            }
        }
    }
}

impl<'a> Val<'a> {
    /// A value of JSON: whole numbers are ints, others doubles.
    pub fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Val::Null,
            Value::Bool(is_true) => Val::Bool(*is_true),
            Value::Number(number) => match number.as_i64() {
                Some(number) => Val::Int(number),
                None => Val::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Val::Text(Text::There(text)),
            Value::Array(_) | Value::Object(_) => Val::Json(value),
        }
    }

    pub fn literal(literal: &'a LiteralValue) -> Self {
        match literal {
            LiteralValue::Boolean(is_true) => Val::Bool(*is_true.inner()),
            LiteralValue::Bytes(bytes) => Val::Bytes(bytes.inner().into()),
            LiteralValue::Double(number) => Val::Double(*number.inner()),
            LiteralValue::Int(number) => Val::Int(*number.inner()),
            LiteralValue::Null => Val::Null,
            LiteralValue::String(text) => Val::Text(Text::There(text.inner())),
            LiteralValue::UInt(number) => Val::Uint(*number.inner()),
        }
    }

    pub fn own_text(text: impl AsRef<str>) -> Self {
        Val::Text(Text::Own(text.as_ref().into()))
    }

    pub fn own_list(all: Vec<Val<'a>>) -> Self {
        Val::List(Rc::new(all))
    }

    pub fn some(value: Val<'a>) -> Self {
        Val::Optional(Some(Rc::new(value)))
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Val::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn list(&self) -> Option<List<'_, 'a>> {
        match self {
            Val::List(all) => Some(List::Own(all)),
            Val::Json(Value::Array(all)) => Some(List::There(all)),
            _ => None,
        }
    }

    pub fn table(&self) -> Option<Table<'_, 'a>> {
        match self {
            Val::Map(all) | Val::Domains(all) => Some(Table::Own(all)),
            Val::Made(made) => Some(Table::Made(made)),
            Val::Json(Value::Object(all)) => Some(Table::There(all)),
            _ => None,
        }
    }

    /// What a map gives for a key that it does not have.
    pub fn missing(&self) -> Option<Self> {
        matches!(self, Val::Domains(_)).then(|| Val::Map(Rc::default()))
    }

    /// How much of it there is to look at.
    pub fn size(&self) -> usize {
        match self {
            Val::Text(text) => text.len(),
            Val::Bytes(bytes) => bytes.len(),
            other => match (other.list(), other.table()) {
                (Some(list), _) => list.len(),
                (_, Some(table)) => table.len(),
                _ => 1,
            },
        }
    }

    /// As `type()` names it.
    pub fn type_name(&self) -> &str {
        match self {
            Val::Null => "null_type",
            Val::Bool(_) => "bool",
            Val::Int(_) => "int",
            Val::Uint(_) => "uint",
            Val::Double(_) => "double",
            Val::Text(_) => "string",
            Val::Bytes(_) => "bytes",
            Val::List(_) | Val::Json(Value::Array(_)) => "list",
            Val::Map(_) | Val::Domains(_) | Val::Json(_) => "map",
            Val::Made(made) => made.of,
            Val::Duration(_) => "google.protobuf.Duration",
            Val::Timestamp(_) => "google.protobuf.Timestamp",
            Val::Type(_) => "type",
            Val::Optional(_) => "optional_type",
            Val::Quantity(_) => "kubernetes.Quantity",
            Val::Semver(_) => "kubernetes.Semver",
            Val::Ip(_) => "net.IP",
            Val::Cidr(_) => "net.CIDR",
            Val::Url(_) => "kubernetes.URL",
            Val::Format(_) => "kubernetes.NamedFormat",
            Val::Asking(asking) => asking.type_name(),
            Val::Variables => "kubernetes.variables",
        }
    }
}
