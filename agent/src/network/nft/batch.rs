//! Changes that the kernel takes as a whole or not at all.
//!
//! Adding what is there already is no error (an element with other data, a set or a base chain of
//! another shape are); deleting what is not there is one. A chain is deleted when no rule and no
//! element leads to it any more: take those away first, in the same batch. Rules are appended: a
//! chain that is flushed and filled in one batch has at no time less than the old or the new rules.

use super::TABLE;
use super::chain::Chain;
use super::rule::Rule;
use super::set::{Element, Set};
use super::wire::{
    BATCH_BEGIN, BATCH_END, FAMILY_INET, FAMILY_UNSPECIFIED, FLAG_ACK, FLAG_APPEND, FLAG_CREATE,
    FLAG_REPLACE, HEADER_BYTES, SUBSYSTEM, Writer, message_type,
};

pub(super) const NEW_TABLE: u16 = 0;
pub(super) const DELETE_TABLE: u16 = 2;
pub(super) const NEW_CHAIN: u16 = 3;
pub(super) const DELETE_CHAIN: u16 = 5;
pub(super) const NEW_RULE: u16 = 6;
pub(super) const DELETE_RULE: u16 = 8;
pub(super) const NEW_SET: u16 = 9;
pub(super) const DELETE_SET: u16 = 11;
pub(super) const NEW_ELEMENTS: u16 = 12;
pub(super) const DELETE_ELEMENTS: u16 = 14;

/// An attribute ends at 64 KiB: more elements are in further messages of the batch.
const ELEMENT_BYTES_MAX: usize = 32 << 10;
/// Of a rule's user data: a comment.
const USER_DATA_COMMENT: u8 = 0;

#[derive(Clone, Debug)]
pub struct Batch {
    table: String,
    messages: Writer,
    /// Where each message begins.
    starts: Vec<usize>,
    sets: u32,
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    pub fn new() -> Self {
        Self::of(TABLE)
    }

    /// Of another table, for tests.
    pub(super) fn of(table: &str) -> Self {
        Self {
            table: table.to_owned(),
            messages: Writer::default(),
            starts: Vec::new(),
            sets: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// How large it is for the kernel.
    pub fn byte_count(&self) -> usize {
        self.messages.bytes.len()
    }

    fn message(&mut self, kind: u16, flags: u16, fill: impl FnOnce(&mut Writer)) {
        self.starts.push(self.messages.bytes.len());
        let open = self
            .messages
            .begin(message_type(kind), flags, FAMILY_INET, 0);
        self.messages.text(1, &self.table);
        fill(&mut self.messages);
        self.messages.end(open);
    }

    pub fn add_table(&mut self) {
        self.message(NEW_TABLE, FLAG_CREATE, |table| table.u32(2, 0));
    }

    /// With all that is in it.
    pub fn delete_table(&mut self) {
        self.message(DELETE_TABLE, 0, |_| {});
    }

    pub fn add_chain(&mut self, chain: &Chain) {
        self.message(NEW_CHAIN, FLAG_CREATE, |writer| {
            writer.text(3, &chain.name);
            let Some(base) = chain.base else { return };
            writer.text(7, base.kind.name());
            writer.u32(5, base.policy.number());
            writer.nested(4, |hook| {
                hook.u32(1, base.hook.number());
                hook.raw(2, &base.priority.to_be_bytes());
            });
        });
    }

    /// One without rules that nothing leads to.
    pub fn delete_chain(&mut self, name: &str) {
        self.message(DELETE_CHAIN, 0, |writer| writer.text(3, name));
    }

    /// Takes all rules of the chain away.
    pub fn flush_chain(&mut self, name: &str) {
        self.message(DELETE_RULE, 0, |writer| writer.text(2, name));
    }

    /// Behind the others of its chain.
    pub fn add_rule(&mut self, rule: &Rule) {
        self.rule(rule, FLAG_CREATE | FLAG_APPEND, None);
    }

    /// Before the others of its chain.
    pub fn insert_rule(&mut self, rule: &Rule) {
        self.rule(rule, FLAG_CREATE, None);
    }

    /// In the place of the rule with this handle.
    pub fn replace_rule(&mut self, handle: u64, rule: &Rule) {
        self.rule(rule, FLAG_REPLACE, Some(handle));
    }

    pub fn delete_rule(&mut self, chain: &str, handle: u64) {
        self.message(DELETE_RULE, 0, |writer| {
            writer.text(2, chain);
            writer.u64(3, handle);
        });
    }

    fn rule(&mut self, rule: &Rule, flags: u16, handle: Option<u64>) {
        self.message(NEW_RULE, flags, |writer| {
            writer.text(2, &rule.chain);
            if let Some(handle) = handle {
                writer.u64(3, handle);
            }
            writer.nested(4, |list| list.bytes.extend(&rule.expressions.bytes));
            if let Some(comment) = &rule.comment {
                let length = u8::try_from(comment.len() + 1).expect("a comment is cut");
                let mut data = vec![USER_DATA_COMMENT, length];
                data.extend(comment.as_bytes());
                data.push(0);
                writer.raw(7, &data);
            }
        });
    }

    pub fn add_set(&mut self, set: &Set) {
        self.sets += 1;
        let id = self.sets;
        self.message(NEW_SET, FLAG_CREATE, |writer| set.encode(writer, id));
    }

    /// With its elements. One that no rule looks into.
    pub fn delete_set(&mut self, name: &str) {
        self.message(DELETE_SET, 0, |writer| writer.text(2, name));
    }

    /// Takes all elements of the set away.
    pub fn flush_set(&mut self, name: &str) {
        self.message(DELETE_ELEMENTS, 0, |writer| writer.text(2, name));
    }

    pub fn add_elements(&mut self, set: &str, elements: impl IntoIterator<Item = Element>) {
        self.elements(NEW_ELEMENTS, FLAG_CREATE, set, elements);
    }

    pub fn delete_elements(&mut self, set: &str, elements: impl IntoIterator<Item = Element>) {
        self.elements(DELETE_ELEMENTS, 0, set, elements);
    }

    /// No message for no elements: one without would mean all.
    fn elements(
        &mut self,
        kind: u16,
        flags: u16,
        set: &str,
        elements: impl IntoIterator<Item = Element>,
    ) {
        let mut elements = elements.into_iter().peekable();
        while elements.peek().is_some() {
            self.message(kind, flags, |writer| {
                writer.text(2, set);
                writer.nested(3, |list| {
                    let start = list.bytes.len();
                    while list.bytes.len() - start < ELEMENT_BYTES_MAX {
                        let Some(element) = elements.next() else {
                            break;
                        };
                        element.encode(list);
                    }
                });
            });
        }
    }

    /// Behind what is here already.
    pub fn append(&mut self, other: &Self) {
        let offset = self.messages.bytes.len();
        self.starts
            .extend(other.starts.iter().map(|start| start + offset));
        self.messages.bytes.extend(&other.messages.bytes);
        self.sets += other.sets;
    }

    pub(super) fn message_count(&self) -> usize {
        self.starts.len()
    }

    /// The bytes of one message.
    pub(super) fn message_bytes(&self, index: usize) -> &[u8] {
        let end = self.starts.get(index + 1).copied();
        let end = end.unwrap_or(self.messages.bytes.len());
        self.starts
            .get(index)
            .map_or(&[], |start| &self.messages.bytes[*start..end])
    }

    /// As it is sent: with its frame, numbered from `sequence` on (the beginning has it), and an
    /// answer asked for the last change.
    pub(super) fn sealed(&self, sequence: u32) -> Vec<u8> {
        let mut sealed = Writer::default();
        let open = sealed.begin(BATCH_BEGIN, 0, FAMILY_UNSPECIFIED, SUBSYSTEM);
        sealed.end(open);
        let mut starts = vec![0];
        starts.extend(self.starts.iter().map(|start| start + sealed.bytes.len()));
        sealed.bytes.extend(&self.messages.bytes);
        if let Some(last) = starts.last().filter(|_| !self.is_empty()) {
            let flags = &mut sealed.bytes[last + 6..last + 8];
            let asked = u16::from_ne_bytes([flags[0], flags[1]]) | FLAG_ACK;
            flags.copy_from_slice(&asked.to_ne_bytes());
        }
        starts.push(sealed.bytes.len());
        let open = sealed.begin(BATCH_END, 0, FAMILY_UNSPECIFIED, SUBSYSTEM);
        sealed.end(open);
        for (number, start) in (0u32..).zip(starts) {
            let header = &mut sealed.bytes[start..start + HEADER_BYTES];
            header[8..12].copy_from_slice(&sequence.wrapping_add(number).to_ne_bytes());
        }
        sealed.bytes
    }
}

#[cfg(test)]
mod tests;
