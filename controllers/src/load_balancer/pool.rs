//! Addresses for load balancers, as a flag gives them. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Of one network, so that looking for a free one stays quick.
const ADDRESSES_MAX: u128 = 65_536;

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PoolError {
    #[error("must be networks or ranges, such as 192.168.1.240/28 or 192.168.1.240-192.168.1.250")]
    Unreadable,
    #[error("must have at most {ADDRESSES_MAX} addresses a network")]
    TooLarge,
}

/// First and last of each range.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AddressPool(Vec<(IpAddr, IpAddr)>);

impl AddressPool {
    pub fn parse(texts: &[String]) -> Result<Self, PoolError> {
        let ranges = texts.iter().map(|text| range(text.trim()));
        Ok(Self(ranges.collect::<Result<_, _>>()?))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|(first, last)| {
            first.is_ipv4() == address.is_ipv4() && (*first..=*last).contains(&address)
        })
    }

    /// All of a family, in their order.
    pub fn addresses(&self, is_ipv4: bool) -> impl Iterator<Item = IpAddr> {
        let ranges = self
            .0
            .iter()
            .filter(move |(first, _)| first.is_ipv4() == is_ipv4);
        ranges.flat_map(|(first, last)| {
            (number(*first)..=number(*last)).map(|number| address(number, first.is_ipv4()))
        })
    }
}

fn range(text: &str) -> Result<(IpAddr, IpAddr), PoolError> {
    let ends = if let Some((first, last)) = text.split_once('-') {
        let ends: (IpAddr, IpAddr) = (parse(first)?, parse(last)?);
        if ends.0.is_ipv4() != ends.1.is_ipv4() || ends.0 > ends.1 {
            return Err(PoolError::Unreadable);
        }
        ends
    } else {
        let (base, prefix) = text.split_once('/').unwrap_or((text, ""));
        let base: IpAddr = parse(base)?;
        let width = if base.is_ipv4() { 32 } else { 128 };
        let prefix: u32 = if prefix.is_empty() {
            width
        } else {
            parse(prefix)?
        };
        let rest = width.checked_sub(prefix).ok_or(PoolError::Unreadable)?;
        let mask = 1u128.checked_shl(rest).map_or(u128::MAX, |size| size - 1);
        let number = number(base);
        let ipv4 = base.is_ipv4();
        (address(number & !mask, ipv4), address(number | mask, ipv4))
    };
    if number(ends.1) - number(ends.0) >= ADDRESSES_MAX {
        return Err(PoolError::TooLarge);
    }
    Ok(ends)
}

fn parse<T: FromStr>(text: &str) -> Result<T, PoolError> {
    text.trim().parse().map_err(|_| PoolError::Unreadable)
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

fn address(number: u128, is_ipv4: bool) -> IpAddr {
    if is_ipv4 {
        let low = u32::try_from(number & u128::from(u32::MAX)).unwrap_or(u32::MAX);
        Ipv4Addr::from(low).into()
    } else {
        Ipv6Addr::from(number).into()
    }
}

#[cfg(test)]
mod tests;
