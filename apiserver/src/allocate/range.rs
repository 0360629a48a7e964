//! The network that Services get their addresses from.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Upstream's bound: a million addresses.
const HOST_BITS_MAX: u32 = 20;
const V6_HOST_BITS_MAX: u32 = 64;
/// Upstream leaves the low end to those who ask for an address by name: 16 to 256 addresses.
const RESERVED: (u128, u128) = (16, 256);
/// Random tries before all addresses are gone through.
const TRIES: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    #[error("it is no network such as 10.43.0.0/16")]
    NoNetwork,
    #[error("it has fewer than 8 addresses or more than a million")]
    Size,
    #[error("there may be one network of IPv4 and one of IPv6")]
    SameFamily,
}

/// A network; its first and, for IPv4, its last address are never given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    base: u128,
    host_bits: u32,
    is_v4: bool,
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

impl Range {
    /// A network that a flag names.
    pub fn parse(cidr: &str) -> Result<Self, RangeError> {
        let range = Self::of_any_size(cidr)?;
        if (3..=HOST_BITS_MAX).contains(&range.host_bits) {
            Ok(range)
        } else {
            Err(RangeError::Size)
        }
    }

    /// A network that a ServiceCIDR names: any size but for upstream's bound on those of IPv6.
    pub fn of_object(cidr: &str) -> Option<Self> {
        let range = Self::of_any_size(cidr).ok()?;
        (range.is_v4 || range.host_bits <= V6_HOST_BITS_MAX).then_some(range)
    }

    fn of_any_size(cidr: &str) -> Result<Self, RangeError> {
        let (address, bits) = cidr.split_once('/').ok_or(RangeError::NoNetwork)?;
        let address: IpAddr = address.parse().map_err(|_| RangeError::NoNetwork)?;
        let bits: u32 = bits.parse().map_err(|_| RangeError::NoNetwork)?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let host_bits = all - u32::min(bits, all);
        if bits > all {
            return Err(RangeError::NoNetwork);
        }
        Ok(Self {
            base: number(address)
                .checked_shr(host_bits)
                .unwrap_or(0)
                .checked_shl(host_bits)
                .unwrap_or(0),
            host_bits,
            is_v4: address.is_ipv4(),
        })
    }

    fn size(&self) -> u128 {
        1u128.checked_shl(self.host_bits).unwrap_or(u128::MAX)
    }

    /// Offsets that may be given out: `1..end`.
    fn end(&self) -> u128 {
        self.size() - u128::from(self.is_v4)
    }

    fn at(&self, offset: u128) -> IpAddr {
        let number = self.base + offset;
        if self.is_v4 {
            let number = u32::try_from(number).expect("an IPv4 network ends below 2^32");
            IpAddr::V4(Ipv4Addr::from(number))
        } else {
            IpAddr::V6(Ipv6Addr::from(number))
        }
    }

    /// The network's own address, which nobody gets.
    pub fn base(&self) -> IpAddr {
        self.at(0)
    }

    /// The address of the API server's own Service.
    pub fn first(&self) -> IpAddr {
        self.at(1)
    }

    /// The address of the cluster's DNS: the tenth, as everybody has it; the last of a network
    /// that is too small for that.
    pub fn dns(&self) -> IpAddr {
        self.at(u128::min(10, self.end() - 1))
    }

    pub fn family(&self) -> &'static str {
        if self.is_v4 { "IPv4" } else { "IPv6" }
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        let offset = number(address).checked_sub(self.base);
        address.is_ipv4() == self.is_v4
            && offset.is_some_and(|offset| (1..self.end()).contains(&offset))
    }

    /// Any free address: random, so that a late use of an old one does not hit its next owner; from
    /// the upper part as long as that has any.
    pub fn any(&self, is_free: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
        if self.end() <= 1 {
            return None;
        }
        let reserved = (self.size() / 16).clamp(RESERVED.0, RESERVED.1);
        let begin = 1 + if reserved < self.end() - 1 {
            reserved
        } else {
            0
        };
        for _ in 0..TRIES {
            let address = self.at(rand::random_range(begin..self.end()));
            if is_free(address) {
                return Some(address);
            }
        }
        (begin..self.end())
            .chain(1..begin)
            .map(|offset| self.at(offset))
            .find(|address| is_free(*address))
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = if self.is_v4 { 32 } else { 128 };
        write!(f, "{}/{}", self.at(0), all - self.host_bits)
    }
}
