//! Networks by their first bits. Pure.

use std::net::IpAddr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    first: u128,
    /// Bits that every address has in common.
    bits: u32,
    /// Of an address: 32 or 128.
    width: u32,
}

impl Prefix {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let (value, width) = number(address.parse().ok()?);
        let bits: u32 = bits.parse().ok().filter(|bits| *bits <= width)?;
        let prefix = Self {
            first: 0,
            bits,
            width,
        };
        Some(Self {
            first: value & !prefix.rest(),
            ..prefix
        })
    }

    /// The bits in which its addresses differ.
    fn rest(self) -> u128 {
        let free = self.width - self.bits;
        1_u128.checked_shl(free).map_or(u128::MAX, |next| next - 1)
    }

    pub(super) fn overlaps(self, other: Self) -> bool {
        let rest = self.rest().max(other.rest());
        self.width == other.width && self.first | rest == other.first | rest
    }

    /// All of another one is in it.
    pub(super) fn holds(self, other: Self) -> bool {
        self.bits <= other.bits && self.overlaps(other)
    }

    /// Services can have it: not the network's own address, nor of IPv4 the last.
    pub(super) fn offers(self, address: IpAddr) -> bool {
        let (value, width) = number(address);
        let is_last = width == 32 && value == self.first | self.rest();
        width == self.width && value & !self.rest() == self.first && value != self.first && !is_last
    }
}

fn number(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    }
}
