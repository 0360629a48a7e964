//! A rule, built one expression after the other: conditions first, then what is done.
//!
//! A rule that looks into a map costs as much as the map has elements when it is added, since the
//! kernel walks all of it then; a set costs nothing, and neither do changes of elements. So a rule
//! that is written anew at each change looks into a map of its own, not into one that all share.
//!
//! A packet that fails a condition leaves the rule there. Registers are given here: a key is loaded
//! into the lower half of them, a target (where a packet is to be sent) into the upper half, so
//! that both may be there at once.

mod act; // Translations, marks, verdicts.
mod encode;
mod part; // Of a key.

pub use act::{Mark, Nat, Reject, Target, Verdict};
pub use part::Part;

use super::datum::{Datum, Family};
use super::field::{self, Field, expression};
use super::wire::Writer;
use encode::{compare, lookup, mask_and_compare, masked};
use std::net::IpAddr;

/// NFT_REG32_00 and NFT_REG32_08: eight registers of four bytes each.
const KEY: u32 = 8;
const TARGET: u32 = 16;
/// What fits into a half of the registers.
const KEY_BYTES_MAX: u32 = 32;
/// The kernel keeps at most 256 bytes with a rule.
const COMMENT_BYTES_MAX: usize = 127;

/// How a value is compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Test {
    Is,
    IsNot,
    AtLeast,
    AtMost,
}

#[derive(Clone, Debug)]
#[must_use]
pub struct Rule {
    pub(super) chain: String,
    pub(super) expressions: Writer,
    pub(super) comment: Option<String>,
    /// Which the rule has looked for already.
    family: Option<Family>,
}

impl Rule {
    pub fn new(chain: impl Into<String>) -> Self {
        Self {
            chain: chain.into(),
            expressions: Writer::default(),
            comment: None,
            family: None,
        }
    }

    /// For those who list the rules; cut at 127 bytes.
    pub fn comment(mut self, text: &str) -> Self {
        let mut end = text.len().min(COMMENT_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.comment = Some(text[..end].to_owned());
        self
    }

    /// Packets of the family alone. Fields that need it look for it themselves.
    pub fn family(mut self, family: Family) -> Self {
        if self.family != Some(family) {
            self.family = Some(family);
            field::meta(&mut self.expressions, KEY, field::META_NFPROTO);
            compare(&mut self.expressions, KEY, Test::Is, &[family.number()]);
        }
        self
    }

    fn load(mut self, key: impl IntoIterator<Item: Into<Part>>) -> Self {
        let parts: Vec<Part> = key.into_iter().map(Into::into).collect();
        for part in &parts {
            if let Some(family) = part.needs() {
                self = self.family(family);
            }
        }
        let mut register = KEY;
        for part in &parts {
            part.load(&mut self.expressions, register);
            register += part.kind().padded_width() / 4;
        }
        assert!(
            register <= KEY + KEY_BYTES_MAX / 4,
            "a key fits into half of the registers"
        );
        self
    }

    /// `Is` and `IsNot` are for all kinds; `AtLeast` and `AtMost` for ports and addresses.
    pub fn test(mut self, field: Field, test: Test, value: &Datum) -> Self {
        debug_assert_eq!(field.kind(), value.kind());
        self = self.load([field]);
        compare(&mut self.expressions, KEY, test, &value.bytes());
        self
    }

    pub fn is(self, field: Field, value: impl Into<Datum>) -> Self {
        self.test(field, Test::Is, &value.into())
    }

    #[allow(clippy::wrong_self_convention)] // It builds.
    pub fn is_not(self, field: Field, value: impl Into<Datum>) -> Self {
        self.test(field, Test::IsNot, &value.into())
    }

    /// Whether any of the bits is there. For fields of the kind `Number`.
    pub fn has_bits(mut self, field: Field, bits: u32) -> Self {
        self = self.load([field]);
        mask_and_compare(&mut self.expressions, KEY, bits, Test::IsNot, 0);
        self
    }

    /// Whether none of the bits is there.
    pub fn lacks_bits(mut self, field: Field, bits: u32) -> Self {
        self = self.load([field]);
        mask_and_compare(&mut self.expressions, KEY, bits, Test::Is, 0);
        self
    }

    /// Whether an address lies in a network (or, by `IsNot`, outside it).
    pub fn in_network(mut self, field: Field, test: Test, base: IpAddr, prefix: u8) -> Self {
        self = self.load([field]);
        let (mask, value) = masked(base, prefix);
        encode::bitwise(&mut self.expressions, KEY, &mask, &vec![0; mask.len()]);
        compare(&mut self.expressions, KEY, test, &value);
        self
    }

    /// Whether the name of a link begins like this.
    pub fn link_starts_with(mut self, field: Field, prefix: &str) -> Self {
        self = self.load([field]);
        compare(&mut self.expressions, KEY, Test::Is, prefix.as_bytes());
        self
    }

    pub fn in_set(mut self, key: impl IntoIterator<Item: Into<Part>>, set: &str) -> Self {
        self = self.load(key);
        lookup(&mut self.expressions, set, KEY, None, false);
        self
    }

    pub fn not_in_set(mut self, key: impl IntoIterator<Item: Into<Part>>, set: &str) -> Self {
        self = self.load(key);
        lookup(&mut self.expressions, set, KEY, None, true);
        self
    }

    /// The verdict that the map has for the key; without one the next rule follows.
    pub fn verdict_map(mut self, key: impl IntoIterator<Item: Into<Part>>, map: &str) -> Self {
        self = self.load(key);
        lookup(&mut self.expressions, map, KEY, Some(0), false);
        self
    }

    /// The target that the map has for the key; without one the next rule follows.
    pub fn find_target(mut self, key: impl IntoIterator<Item: Into<Part>>, map: &str) -> Self {
        self = self.load(key);
        lookup(&mut self.expressions, map, KEY, Some(TARGET), false);
        self
    }

    /// The target that the map has for a random number of `offset..offset + modulus`. `modulus`
    /// is not 0. For maps of several lists see `Part::Random` and `Part::Constant`.
    pub fn random_target(self, map: &str, modulus: u32, offset: u32) -> Self {
        self.find_target([Part::Random { modulus, offset }], map)
    }

    /// Keeps the key (with the target, in a map) in a dynamic set, and its timeout from now on. A
    /// key that is there already keeps its target. When the set is full the rule ends here.
    pub fn remember(
        mut self,
        key: impl IntoIterator<Item: Into<Part>>,
        set: &str,
        what: Remember,
    ) -> Self {
        self = self.load(key);
        encode::remember(&mut self.expressions, set, KEY, TARGET, what);
        self
    }

    /// Takes the key out of a dynamic map whose data is no longer than it; no harm when it is not
    /// there.
    pub fn forget(mut self, key: impl IntoIterator<Item: Into<Part>>, map: &str) -> Self {
        self = self.load(key);
        encode::forget(&mut self.expressions, map, KEY);
        self
    }

    /// Passes so many packets a second, and `burst` at once above them.
    pub fn limit(mut self, packets_per_second: u64, burst: u32) -> Self {
        encode::limit(&mut self.expressions, packets_per_second, burst);
        self
    }

    /// Counts packets and bytes.
    pub fn counter(mut self) -> Self {
        expression(&mut self.expressions, "counter", |data| {
            data.u64(1, 0);
            data.u64(2, 0);
        });
        self
    }

    /// Sets a register. The kernel takes 16 bytes at once.
    fn immediate(&mut self, register: u32, value: &Datum) {
        encode::immediate(&mut self.expressions, register, &value.bytes());
    }
}

/// What `Rule::remember` keeps beside the key.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Remember {
    /// The target too: the set is a map.
    pub with_target: bool,
    /// Instead of the set's own.
    pub timeout: Option<std::time::Duration>,
}

#[cfg(test)]
mod tests;
