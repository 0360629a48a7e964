//! The blocks that a range is cut into: /24 of IPv4, /64 of IPv6, as upstream's defaults.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const BLOCK_BITS_V4: u32 = 24;
const BLOCK_BITS_V6: u32 = 64;
/// A range may hold more; nobody has more nodes than this.
const BLOCKS_MAX: usize = 65_536;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the cluster CIDR {text:?} is no network that holds a block for a node")]
pub(super) struct RangeError {
    text: String,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    first: u128,
    is_v4: bool,
    /// A range smaller than a block is one block.
    block_bits: u32,
    count: usize,
}

impl Blocks {
    pub(super) fn new(cidr: &str) -> Result<Self, RangeError> {
        let bad = || RangeError {
            text: cidr.to_owned(),
        };
        let (address, bits) = split(cidr).ok_or_else(bad)?;
        let (first, is_v4, width, block) = match address {
            IpAddr::V4(address) => (u128::from(u32::from(address)), true, 32, BLOCK_BITS_V4),
            IpAddr::V6(address) => (u128::from(address), false, 128, BLOCK_BITS_V6),
        };
        if bits > width {
            return Err(bad());
        }
        let block_bits = block.max(bits);
        let count = 1_usize
            .checked_shl(block_bits - bits)
            .unwrap_or(BLOCKS_MAX)
            .min(BLOCKS_MAX);
        Ok(Self {
            first,
            is_v4,
            block_bits,
            count,
        })
    }

    fn size(&self) -> u128 {
        let width = if self.is_v4 { 32 } else { 128 };
        1 << (width - self.block_bits)
    }

    pub(super) fn cidr(&self, number: usize) -> String {
        let first = self.first + self.size() * number as u128;
        let address = if self.is_v4 {
            IpAddr::V4(Ipv4Addr::from(u32::try_from(first).unwrap_or(u32::MAX)))
        } else {
            IpAddr::V6(Ipv6Addr::from(first))
        };
        format!("{address}/{}", self.block_bits)
    }

    /// Which block a CIDR is; `None` when it lies outside of the range.
    pub(super) fn number(&self, cidr: &str) -> Option<usize> {
        let (address, _) = split(cidr)?;
        let value = match address {
            IpAddr::V4(address) if self.is_v4 => u128::from(u32::from(address)),
            IpAddr::V6(address) if !self.is_v4 => u128::from(address),
            _ => return None,
        };
        let number = usize::try_from(value.checked_sub(self.first)? / self.size()).ok()?;
        (number < self.count).then_some(number)
    }

    pub(super) fn first_free(&self, used: &BTreeSet<usize>) -> Option<usize> {
        (0..self.count).find(|number| !used.contains(number))
    }
}

fn split(cidr: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = cidr.split_once('/')?;
    Some((address.parse().ok()?, bits.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_into_blocks() {
        let blocks = Blocks::new("10.42.0.0/16").unwrap();
        assert_eq!(
            (blocks.cidr(0).as_str(), blocks.cidr(255).as_str()),
            ("10.42.0.0/24", "10.42.255.0/24")
        );
        assert_eq!(blocks.number("10.42.7.0/24"), Some(7));
        assert_eq!(blocks.number("10.43.0.0/24"), None);
        assert_eq!(blocks.first_free(&BTreeSet::from([0, 1, 3])), Some(2));
        assert_eq!(blocks.first_free(&(0..256).collect()), None);
        let v6 = Blocks::new("fd00::/56").unwrap();
        assert_eq!((v6.cidr(1).as_str(), v6.count), ("fd00:0:0:1::/64", 256));
        assert_eq!(Blocks::new("10.0.0.0/26").unwrap().cidr(0), "10.0.0.0/26");
        assert!(Blocks::new("10.0.0.0/99").is_err() && Blocks::new("x").is_err());
    }
}
