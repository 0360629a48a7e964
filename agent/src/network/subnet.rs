//! A network of addresses, of either family. Pure.

use crate::families::OfFamily;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Kept as text, and checked when it is read.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Subnet {
    base: IpAddr,
    pub prefix_length: u8,
}

impl Subnet {
    pub fn parse(cidr: &str) -> Option<Self> {
        let (address, prefix) = cidr.split_once('/')?;
        Self::new(address.parse().ok()?, prefix.parse().ok()?)
    }

    /// The network that an address is in. None when the prefix is too long.
    pub fn new(address: IpAddr, prefix_length: u8) -> Option<Self> {
        let width = width(address);
        if prefix_length > width {
            return None;
        }
        let host_bits = width - prefix_length;
        let number = to_number(address);
        let base = if host_bits == 128 {
            0
        } else {
            number >> host_bits << host_bits
        };
        Some(Self {
            base: to_address(base, address.is_ipv4()),
            prefix_length,
        })
    }

    /// Of one address alone.
    pub fn of(address: IpAddr) -> Self {
        Self {
            base: address,
            prefix_length: width(address),
        }
    }

    /// Its first address.
    pub fn base(&self) -> IpAddr {
        self.base
    }

    /// Its last one, which for IPv4 is the one for broadcast.
    pub fn last(&self) -> IpAddr {
        let host_bits = width(self.base) - self.prefix_length;
        let rest = u128::MAX.checked_shr(128 - u32::from(host_bits));
        let last = to_number(self.base) | rest.unwrap_or(0);
        to_address(last, self.is_ipv4())
    }

    pub fn is_ipv4(&self) -> bool {
        self.base.is_ipv4()
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        self.overlaps(&Self::of(address))
    }

    pub fn overlaps(&self, other: &Self) -> bool {
        let shorter = self.prefix_length.min(other.prefix_length);
        let kept = |subnet: &Self| {
            let host_bits = u32::from(width(subnet.base) - shorter);
            to_number(subnet.base).checked_shr(host_bits).unwrap_or(0)
        };
        self.is_ipv4() == other.is_ipv4() && kept(self) == kept(other)
    }

    /// The node's own address in it.
    pub fn gateway(&self) -> IpAddr {
        self.at(1)
    }

    /// How many addresses follow the gateway, bounded; the last IPv4 address is for broadcast.
    pub fn pod_count(&self) -> u64 {
        let host_bits = width(self.base) - self.prefix_length;
        // A /16 of pods is far beyond one node.
        let size = 1u64 << host_bits.min(16);
        let broadcast = u64::from(self.base.is_ipv4());
        size.saturating_sub(2 + broadcast)
    }

    /// The address of a pod, from 0.
    pub fn pod(&self, index: u64) -> IpAddr {
        self.at(index + 2)
    }

    fn at(&self, offset: u64) -> IpAddr {
        to_address(
            to_number(self.base) + u128::from(offset),
            self.base.is_ipv4(),
        )
    }
}

impl OfFamily for Subnet {
    fn is_ipv4(&self) -> bool {
        Self::is_ipv4(self)
    }
}

impl TryFrom<String> for Subnet {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("{text:?} is no network"))
    }
}

impl From<Subnet> for String {
    fn from(subnet: Subnet) -> Self {
        subnet.to_string()
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix_length)
    }
}

/// Of its addresses, in bits.
pub fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

pub fn to_number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

/// Of IPv4 the low 32 bits.
pub fn to_address(number: u128, is_v4: bool) -> IpAddr {
    if is_v4 {
        let low = u32::try_from(number & u128::from(u32::MAX)).unwrap_or(u32::MAX);
        Ipv4Addr::from(low).into()
    } else {
        Ipv6Addr::from(number).into()
    }
}

#[cfg(test)]
mod tests;
