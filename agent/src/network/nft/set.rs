//! Sets, maps and their elements.

use super::datum::{Datum, Kind, concatenated, total_width, type_number};
use super::ranges::{Range, successor};
use super::rule::Verdict;
use super::wire::Writer;
use std::time::Duration;

/// What the kernel calls the data of a verdict map.
const VERDICT_TYPE: u32 = 0xffff_ff00;

pub(super) const FLAG_INTERVAL: u32 = 0x4;
pub(super) const FLAG_MAP: u32 = 0x8;
pub(super) const FLAG_TIMEOUT: u32 = 0x10;
const FLAG_DYNAMIC: u32 = 0x20;
const FLAG_CONCATENATED: u32 = 0x80;
const ELEMENT_INTERVAL_END: u32 = 1;

/// A set of keys, or a map from keys to values or to verdicts.
#[derive(Clone, Debug, Eq, PartialEq)]
#[must_use]
pub struct Set {
    pub name: String,
    key: Vec<Kind>,
    data: Data,
    has_intervals: bool,
    timeout: Option<Duration>,
    has_timeouts: bool,
    is_dynamic: bool,
    size: Option<u32>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Data {
    None,
    Values(Vec<Kind>),
    Verdicts,
}

impl Set {
    pub fn new(name: impl Into<String>, key: &[Kind]) -> Self {
        Self {
            name: name.into(),
            key: key.to_vec(),
            data: Data::None,
            has_intervals: false,
            timeout: None,
            has_timeouts: false,
            is_dynamic: false,
            size: None,
        }
    }

    pub fn map(name: impl Into<String>, key: &[Kind], data: &[Kind]) -> Self {
        Self {
            data: Data::Values(data.to_vec()),
            ..Self::new(name, key)
        }
    }

    pub fn verdict_map(name: impl Into<String>, key: &[Kind]) -> Self {
        Self {
            data: Data::Verdicts,
            ..Self::new(name, key)
        }
    }

    /// Elements may be ranges; they must not overlap. With one part of the key alone, all elements
    /// are made by `Element::range`.
    pub fn intervals(mut self) -> Self {
        self.has_intervals = true;
        self
    }

    /// Elements may go by themselves: after this time, when they have none of their own.
    pub fn timeout(mut self, timeout: Option<Duration>) -> Self {
        self.has_timeouts = true;
        self.timeout = timeout;
        self
    }

    /// Rules add elements, at most `size` of them.
    pub fn dynamic(mut self, size: u32) -> Self {
        self.is_dynamic = true;
        self.size = Some(size);
        self
    }

    fn flags(&self) -> u32 {
        let is_concatenated = self.has_intervals && self.key.len() > 1;
        let flags = [
            (self.has_intervals, FLAG_INTERVAL),
            (self.data != Data::None, FLAG_MAP),
            (self.has_timeouts, FLAG_TIMEOUT),
            (self.is_dynamic, FLAG_DYNAMIC),
            (is_concatenated, FLAG_CONCATENATED),
        ];
        let set = flags.iter().filter(|(is_set, _)| *is_set);
        set.map(|(_, flag)| flag).sum()
    }

    /// Attributes of NEWSET behind the table's.
    pub(super) fn encode(&self, writer: &mut Writer, id: u32) {
        writer.text(2, &self.name);
        writer.u32(3, self.flags());
        writer.u32(4, type_number(&self.key));
        writer.u32(5, total_width(&self.key));
        match &self.data {
            Data::None => {}
            Data::Values(kinds) => {
                writer.u32(6, type_number(kinds));
                writer.u32(7, total_width(kinds));
            }
            Data::Verdicts => {
                writer.u32(6, VERDICT_TYPE);
                writer.u32(7, 0);
            }
        }
        writer.u32(10, id);
        if let Some(timeout) = self.timeout {
            writer.u64(11, milliseconds(timeout));
        }
        if self.size.is_some() || self.flags() & FLAG_CONCATENATED != 0 {
            writer.nested(9, |description| self.encode_description(description));
        }
        writer.raw(13, &self.user_data());
    }

    fn encode_description(&self, writer: &mut Writer) {
        if let Some(size) = self.size {
            writer.u32(1, size);
        }
        if self.flags() & FLAG_CONCATENATED != 0 {
            writer.nested(2, |fields| {
                for kind in &self.key {
                    fields.nested(1, |field| field.u32(1, kind.width()));
                }
            });
        }
    }

    /// The byte order of keys and data, for `nft` to print them.
    fn user_data(&self) -> Vec<u8> {
        let order = |kinds: &[Kind]| match kinds {
            [single] if single.is_of_host() => 1u32,
            [_] => 2,
            _ => 0,
        };
        let mut bytes = vec![0, 4];
        bytes.extend(order(&self.key).to_ne_bytes());
        let data = match &self.data {
            Data::None => return bytes,
            Data::Values(kinds) => order(kinds),
            Data::Verdicts => 0,
        };
        bytes.extend([1, 4]);
        bytes.extend(data.to_ne_bytes());
        bytes
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// An element of a set or a map. To delete one its key is enough.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[must_use]
pub struct Element {
    pub key: Vec<Datum>,
    /// The last key of a range.
    pub key_end: Option<Vec<Datum>>,
    pub value: Option<Value>,
    /// Instead of the set's own.
    pub timeout: Option<Duration>,
}

#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Value {
    Data(Vec<Datum>),
    Verdict(Verdict),
}

impl Element {
    pub fn new(key: impl Into<Vec<Datum>>) -> Self {
        Self {
            key: key.into(),
            key_end: None,
            value: None,
            timeout: None,
        }
    }

    /// From the first to the last, both included, in a set of intervals.
    pub fn range(range: Range) -> Self {
        Self::new([range.first.into()]).until([range.last.into()])
    }

    /// The last key, for ranges in several parts of a key: each part is a range of its own.
    pub fn until(mut self, key_end: impl Into<Vec<Datum>>) -> Self {
        self.key_end = Some(key_end.into());
        self
    }

    /// The data of a map.
    pub fn to(mut self, data: impl Into<Vec<Datum>>) -> Self {
        self.value = Some(Value::Data(data.into()));
        self
    }

    /// Of a verdict map.
    pub fn verdict(mut self, verdict: Verdict) -> Self {
        self.value = Some(Value::Verdict(verdict));
        self
    }

    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// One element of a list, or two: a range of one part is its first key and the key behind it.
    pub(super) fn encode(&self, writer: &mut Writer) {
        let end = self.key_end.as_deref();
        let is_pair = self.key.len() == 1 && end.is_some();
        writer.nested(1, |element| {
            if let Some(timeout) = self.timeout {
                element.u64(4, milliseconds(timeout));
            }
            data(element, 1, &concatenated(&self.key));
            if let (Some(end), false) = (end, is_pair) {
                data(element, 10, &concatenated(end));
            }
            match &self.value {
                Some(Value::Data(values)) => data(element, 2, &concatenated(values)),
                Some(Value::Verdict(verdict)) => {
                    element.nested(2, |inner| verdict.encode(inner));
                }
                None => {}
            }
        });
        let (Some(end), true) = (end, is_pair) else {
            return;
        };
        // Nothing is behind the last of all.
        if let Some(behind) = successor(&concatenated(end)) {
            writer.nested(1, |element| {
                element.u32(3, ELEMENT_INTERVAL_END);
                data(element, 1, &behind);
            });
        }
    }
}

fn data(writer: &mut Writer, kind: u16, bytes: &[u8]) {
    writer.nested(kind, |inner| inner.raw(1, bytes));
}
