//! The expressions of conditions, as the kernel wants them.

use super::super::field::expression;
use super::super::wire::Writer;
use super::{Remember, Test};
use std::net::IpAddr;

/// Attributes of NFTA_DATA.
const VALUE: u16 = 1;

pub fn compare(writer: &mut Writer, register: u32, test: Test, value: &[u8]) {
    let operation = match test {
        Test::Is => 0,
        Test::IsNot => 1,
        Test::AtMost => 3,
        Test::AtLeast => 5,
    };
    expression(writer, "cmp", |data| {
        data.u32(1, register);
        data.u32(2, operation);
        data.nested(3, |inner| inner.raw(VALUE, value));
    });
}

/// register = (register & mask) ^ flip, in place.
pub fn bitwise(writer: &mut Writer, register: u32, mask: &[u8], flip: &[u8]) {
    let length = u32::try_from(mask.len()).expect("a register is short");
    expression(writer, "bitwise", |data| {
        data.u32(1, register);
        data.u32(2, register);
        data.u32(3, length);
        data.nested(4, |inner| inner.raw(VALUE, mask));
        data.nested(5, |inner| inner.raw(VALUE, flip));
    });
}

/// From one register to another: a mask that leaves all.
pub fn copy(writer: &mut Writer, from: u32, to: u32, length: u32) {
    let bytes = vec![0; length as usize];
    let mask = vec![u8::MAX; length as usize];
    expression(writer, "bitwise", |data| {
        data.u32(1, from);
        data.u32(2, to);
        data.u32(3, length);
        data.nested(4, |inner| inner.raw(VALUE, &mask));
        data.nested(5, |inner| inner.raw(VALUE, &bytes));
    });
}

/// Of numbers in the host's order.
pub fn mask_and_compare(writer: &mut Writer, register: u32, mask: u32, test: Test, value: u32) {
    bitwise(writer, register, &mask.to_ne_bytes(), &[0; 4]);
    compare(writer, register, test, &value.to_ne_bytes());
}

/// Mask and base of a network.
pub fn masked(base: IpAddr, prefix: u8) -> (Vec<u8>, Vec<u8>) {
    let octets = match base {
        IpAddr::V4(base) => base.octets().to_vec(),
        IpAddr::V6(base) => base.octets().to_vec(),
    };
    let mask: Vec<u8> = (0..octets.len())
        .map(|byte| {
            let bits = usize::from(prefix).saturating_sub(byte * 8).min(8);
            !u8::try_from(0xff_u16 >> bits).unwrap_or(u8::MAX)
        })
        .collect();
    let base = octets.iter().zip(&mask).map(|(octet, mask)| octet & mask);
    let base = base.collect();
    (mask, base)
}

pub fn lookup(writer: &mut Writer, set: &str, key: u32, target: Option<u32>, is_inverted: bool) {
    expression(writer, "lookup", |data| {
        data.text(1, set);
        data.u32(2, key);
        if let Some(target) = target {
            data.u32(3, target);
        }
        if is_inverted {
            data.u32(5, 1);
        }
    });
}

pub fn random(writer: &mut Writer, register: u32, modulus: u32, offset: u32) {
    const RANDOM: u32 = 1;
    expression(writer, "numgen", |data| {
        data.u32(1, register);
        data.u32(2, modulus);
        data.u32(3, RANDOM);
        data.u32(4, offset);
    });
}

pub fn remember(writer: &mut Writer, set: &str, key: u32, target: u32, what: Remember) {
    const UPDATE: u32 = 1;
    expression(writer, "dynset", |data| {
        data.u32(4, key);
        if what.with_target {
            data.u32(5, target);
        }
        data.u32(3, UPDATE);
        if let Some(timeout) = what.timeout {
            let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            data.u64(6, timeout_ms);
        }
        data.text(1, set);
    });
}

/// From a map: the kernel wants a register of data too, at which it does not look.
pub fn forget(writer: &mut Writer, map: &str, key: u32) {
    const DELETE: u32 = 2;
    expression(writer, "dynset", |data| {
        data.u32(4, key);
        data.u32(5, key);
        data.u32(3, DELETE);
        data.text(1, map);
    });
}

pub fn limit(writer: &mut Writer, packets_per_second: u64, burst: u32) {
    const SECOND: u64 = 1;
    const PACKETS: u32 = 0;
    expression(writer, "limit", |data| {
        data.u64(1, packets_per_second);
        data.u64(2, SECOND);
        data.u32(4, PACKETS);
        data.u32(3, burst);
        data.u32(5, 0);
    });
}

pub fn immediate(writer: &mut Writer, register: u32, bytes: &[u8]) {
    expression(writer, "immediate", |data| {
        data.u32(1, register);
        data.nested(2, |inner| inner.raw(VALUE, bytes));
    });
}
