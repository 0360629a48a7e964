//! Ranges of addresses: of networks, and brought together so that none overlap. Pure.

use super::datum::{Datum, concatenated, split};
use super::set::Element;
use crate::network::subnet::{Subnet, to_address, to_number};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Both ends belong to it, and are of one family.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Range {
    pub first: IpAddr,
    pub last: IpAddr,
}

impl From<Subnet> for Range {
    fn from(network: Subnet) -> Self {
        Self {
            first: network.base(),
            last: network.last(),
        }
    }
}

/// The same addresses in ranges that neither overlap nor touch, in their order.
pub fn merged(ranges: impl IntoIterator<Item = Range>) -> Vec<Range> {
    let mut sorted: Vec<_> = ranges.into_iter().collect();
    sorted.sort();
    let mut all: Vec<Range> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match all.last_mut() {
            Some(last) if touches(*last, range) => last.last = last.last.max(range.last),
            _ => all.push(range),
        }
    }
    all
}

/// What of the ranges lies in none of the others; all merged.
pub fn without(
    ranges: impl IntoIterator<Item = Range>,
    others: impl IntoIterator<Item = Range>,
) -> Vec<Range> {
    let others = merged(others);
    let mut all = Vec::new();
    for range in merged(ranges) {
        let mut rest = Some(range);
        for other in &others {
            let Some(left) = rest.filter(|left| overlaps(*left, *other)) else {
                continue;
            };
            if left.first < other.first {
                all.push(Range {
                    first: left.first,
                    last: to_address(to_number(other.first) - 1, other.first.is_ipv4()),
                });
            }
            rest = (other.last < left.last).then(|| Range {
                first: to_address(to_number(other.last) + 1, other.last.is_ipv4()),
                last: left.last,
            });
        }
        all.extend(rest);
    }
    all
}

fn overlaps(left: Range, right: Range) -> bool {
    left.first.is_ipv4() == right.first.is_ipv4()
        && left.first <= right.last
        && right.first <= left.last
}

/// The second does not begin before the first.
fn touches(first: Range, second: Range) -> bool {
    first.first.is_ipv4() == second.first.is_ipv4()
        && to_number(second.first) <= to_number(first.last).saturating_add(1)
}

/// The big-endian number behind this one; None behind the last.
pub(super) fn successor(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut next = bytes.to_vec();
    for byte in next.iter_mut().rev() {
        let (sum, is_over) = byte.overflowing_add(1);
        *byte = sum;
        if !is_over {
            return Some(next);
        }
    }
    None
}

/// The big-endian number before this one; None before the first.
fn predecessor(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut before = bytes.to_vec();
    for byte in before.iter_mut().rev() {
        let (difference, is_under) = byte.overflowing_sub(1);
        *byte = difference;
        if !is_under {
            return Some(before);
        }
    }
    None
}

/// Gives the elements of a dump their last keys, from the keys behind them.
pub(super) fn close(elements: &mut [Element], mut ends: Vec<Vec<Datum>>) {
    ends.sort();
    for element in elements {
        let behind = ends.iter().find(|end| **end > element.key);
        let kind = element.key[0].kind();
        let last = match behind {
            Some(behind) => predecessor(&concatenated(behind)),
            None => Some(vec![u8::MAX; kind.width() as usize]),
        };
        element.key_end = last.and_then(|last| split(&[kind], &last));
    }
}

#[cfg(test)]
mod tests;
