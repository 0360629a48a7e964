//! What the kernel says is there, read into what it was made from.

use super::TABLE;
use super::batch::{
    DELETE_CHAIN, DELETE_ELEMENTS, DELETE_RULE, DELETE_SET, DELETE_TABLE, NEW_CHAIN, NEW_ELEMENTS,
    NEW_RULE, NEW_SET, NEW_TABLE,
};
use super::chain::{Hook, Policy};
use super::datum::{Kind, split};
use super::rule::Verdict;
use super::set::{Element, FLAG_INTERVAL, Value};
use super::wire::{Attributes, FAMILY_INET, FAMILY_IP4, FAMILY_IP6, messages};
use std::time::Duration;

pub(super) const GET_TABLE: u16 = 1;
pub(super) const GET_CHAIN: u16 = 4;
pub(super) const GET_RULE: u16 = 7;
pub(super) const GET_SET: u16 = 10;
pub(super) const GET_ELEMENTS: u16 = 13;
pub(super) const GET_GENERATION: u16 = 16;

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TableFound {
    pub name: String,
    /// Another one when the table was deleted and made again.
    pub handle: u64,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChainFound {
    pub name: String,
    pub handle: u64,
    pub is_base: bool,
    /// Rules in it, and rules and elements that lead to it.
    pub uses: u32,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuleFound {
    pub chain: String,
    pub handle: u64,
    pub comment: Option<String>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SetFound {
    pub name: String,
    pub handle: u64,
    /// None when it has a kind that is not known here.
    pub key: Option<Vec<Kind>>,
    /// Empty for a set, and for a verdict map.
    pub data: Vec<Kind>,
    /// Of its elements, where the kernel tells (since 6.16).
    pub(super) count: Option<usize>,
    flags: u32,
}

impl SetFound {
    pub(super) fn has_ranges(&self) -> bool {
        self.flags & FLAG_INTERVAL != 0
    }
}

/// A base chain in a table of someone else.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ForeignChain {
    /// As `nft` has it: `ip`, `ip6` or `inet`.
    pub family: &'static str,
    pub table: String,
    pub name: String,
}

impl ForeignChain {
    /// Whether it sees packets of the IP family.
    pub fn is_about(&self, is_ipv4: bool) -> bool {
        self.family == "inet" || (self.family == "ip") == is_ipv4
    }
}

/// One of this hook whose policy is to drop; None for others.
pub(super) fn foreign_drop(body: &[u8], hook: Hook) -> Option<ForeignChain> {
    let (family, attributes) = (*body.first()?, Attributes(body.get(4..)?));
    let is_of_hook = attributes.nested(4).u32(1)? == hook.number();
    let drops = attributes.u32(5)? == Policy::Drop.number();
    let is_filter = attributes.text(7).as_deref() == Some("filter");
    let family = match family {
        FAMILY_INET => "inet",
        FAMILY_IP4 => "ip",
        FAMILY_IP6 => "ip6",
        _ => return None,
    };
    let table = attributes.text(1)?;
    let is_ours = family == "inet" && table == TABLE;
    (is_of_hook && drops && is_filter && !is_ours).then_some(ForeignChain {
        family,
        name: attributes.text(3)?,
        table,
    })
}

/// Of our table; None for others.
fn of_ours(attributes: Attributes<'_>) -> Option<()> {
    (attributes.text(1)? == TABLE).then_some(())
}

pub(super) fn table(attributes: Attributes<'_>) -> Option<TableFound> {
    Some(TableFound {
        name: attributes.text(1)?,
        handle: attributes.u64(4)?,
    })
}

pub(super) fn chain(attributes: Attributes<'_>) -> Option<ChainFound> {
    of_ours(attributes)?;
    Some(ChainFound {
        name: attributes.text(3)?,
        handle: attributes.u64(2)?,
        is_base: attributes.get(4).is_some(),
        uses: attributes.u32(6).unwrap_or_default(),
    })
}

pub(super) fn rule(attributes: Attributes<'_>) -> Option<RuleFound> {
    of_ours(attributes)?;
    Some(RuleFound {
        chain: attributes.text(2)?,
        handle: attributes.u64(3)?,
        comment: attributes.get(7).and_then(comment),
    })
}

fn comment(user_data: &[u8]) -> Option<String> {
    let (kind, length) = (*user_data.first()?, *user_data.get(1)?);
    let text = user_data.get(2..2 + usize::from(length))?;
    let text = text.strip_suffix(&[0]).unwrap_or(text);
    (kind == 0).then(|| String::from_utf8_lossy(text).into_owned())
}

pub(super) fn set(attributes: Attributes<'_>) -> Option<SetFound> {
    of_ours(attributes)?;
    let data = attributes.u32(6).and_then(kinds);
    Some(SetFound {
        name: attributes.text(2)?,
        handle: attributes.u64(16).unwrap_or_default(),
        key: attributes.u32(4).and_then(kinds),
        data: data.unwrap_or_default(),
        count: attributes.u32(20).and_then(|count| count.try_into().ok()),
        flags: attributes.u32(3).unwrap_or_default(),
    })
}

/// From the number that `nft` has for them; None when one is not ours.
fn kinds(mut number: u32) -> Option<Vec<Kind>> {
    const ALL: [Kind; 6] = [
        Kind::Ip4,
        Kind::Ip6,
        Kind::Protocol,
        Kind::Port,
        Kind::Number,
        Kind::Interface,
    ];
    let mut found = Vec::new();
    while number != 0 {
        let one = number & 0x3f;
        found.push(*ALL.iter().find(|kind| kind.type_number() == one)?);
        number >>= 6;
    }
    found.reverse();
    Some(found)
}

/// Of all messages of a dump. Ends of ranges are put to their beginnings.
pub(super) fn elements<'a>(
    set: &SetFound,
    lists: impl Iterator<Item = Attributes<'a>>,
) -> Vec<Element> {
    let mut all = Vec::new();
    let mut ends = Vec::new();
    for list in lists {
        for (_, bytes) in list.nested(3).iter() {
            let attributes = Attributes(bytes);
            let Some(found) = element(set, attributes) else {
                continue;
            };
            if attributes.u32(3).unwrap_or_default() & 1 == 1 {
                ends.push(found.key);
            } else {
                all.push(found);
            }
        }
    }
    let is_single = set.key.as_ref().is_some_and(|key| key.len() == 1);
    if set.has_ranges() && is_single {
        super::ranges::close(&mut all, ends);
    }
    all
}

fn element(set: &SetFound, attributes: Attributes<'_>) -> Option<Element> {
    let kinds = set.key.as_deref()?;
    let key = |kind| split(kinds, attributes.nested(kind).get(1)?);
    let data = attributes.nested(2);
    let value = match data.get(1) {
        Some(bytes) => Some(Value::Data(split(&set.data, bytes)?)),
        None => verdict(data.nested(2)).map(Value::Verdict),
    };
    Some(Element {
        key: key(1)?,
        key_end: key(10),
        value,
        timeout: attributes.u64(4).map(Duration::from_millis),
    })
}

fn verdict(attributes: Attributes<'_>) -> Option<Verdict> {
    let code = attributes.get(1)?.first_chunk()?;
    let chain = || attributes.text(2);
    Some(match i32::from_be_bytes(*code) {
        0 => Verdict::Drop,
        1 => Verdict::Accept,
        -1 => Verdict::Continue,
        -3 => Verdict::Jump(chain()?),
        -4 => Verdict::Goto(chain()?),
        -5 => Verdict::Return,
        _ => return None,
    })
}

/// What a message of a batch is to do.
pub(super) fn words(bytes: &[u8]) -> String {
    let Some(message) = messages(bytes).next() else {
        return "take a message".to_owned();
    };
    let attributes = message.attributes();
    let name = |kind| attributes.text(kind).unwrap_or_default();
    match message.number() {
        Some(NEW_TABLE) => format!("add the table {}", name(1)),
        Some(DELETE_TABLE) => format!("delete the table {}", name(1)),
        Some(NEW_CHAIN) => format!("add the chain {}", name(3)),
        Some(DELETE_CHAIN) => format!("delete the chain {}", name(3)),
        Some(NEW_RULE) => match attributes.get(7).and_then(comment) {
            Some(comment) => format!("add a rule to {} ({comment})", name(2)),
            None => format!("add a rule to {}", name(2)),
        },
        Some(DELETE_RULE) => format!("delete rules of {}", name(2)),
        Some(NEW_SET) => format!("add the set {}", name(2)),
        Some(DELETE_SET) => format!("delete the set {}", name(2)),
        Some(NEW_ELEMENTS) => format!("add elements to {}", name(2)),
        Some(DELETE_ELEMENTS) => format!("delete elements of {}", name(2)),
        _ => "take a message".to_owned(),
    }
}
