//! Pod templates as documents that can be compared, and short names for what has been hashed.
//! Pure.

use serde_json::Value;

/// Upstream's alphabet for generated names: no vowels, no look-alikes.
const SAFE_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const FNV_OFFSET: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;

/// Takes out what may be absent as well. Empty maps stay: `emptyDir: {}` means something.
pub(crate) fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(drop_empty);
            map.retain(|_, value| match value {
                Value::Null => false,
                Value::Array(items) => !items.is_empty(),
                _ => true,
            });
        }
        Value::Array(items) => items.iter_mut().for_each(drop_empty),
        _ => {}
    }
}

/// FNV-1a of these pieces, one after the other.
pub(crate) fn fnv1a(pieces: &[&[u8]]) -> u32 {
    fold(pieces, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(FNV_PRIME)
    })
}

/// FNV-1 of these pieces, one after the other: the older of the two.
pub(crate) fn fnv1(pieces: &[&[u8]]) -> u32 {
    fold(pieces, |hash, byte| {
        hash.wrapping_mul(FNV_PRIME) ^ u32::from(byte)
    })
}

fn fold(pieces: &[&[u8]], step: fn(u32, u8) -> u32) -> u32 {
    let bytes = pieces.iter().flat_map(|piece| piece.iter());
    bytes.fold(FNV_OFFSET, |hash, byte| step(hash, *byte))
}

/// A hash as upstream writes it into names.
pub(crate) fn safe_text(hash: u32) -> String {
    let digits = hash.to_string();
    digits
        .bytes()
        .map(|digit| char::from(SAFE_ALPHABET[usize::from(digit) % 27]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of the hash's authors.
    #[test]
    fn hashes_are_those_of_their_authors() {
        assert_eq!(fnv1(&[]), 0x811c_9dc5);
        assert_eq!(fnv1(&[b"a"]), 0x050c_5d7e);
        assert_eq!(fnv1(&[b"foo", b"bar"]), 0x31f0_b262);
        assert_eq!(fnv1a(&[b"a"]), 0xe40c_292c);
        assert_eq!(fnv1a(&[b"foo", b"bar"]), 0xbf9c_f968);
    }

    #[test]
    fn names_have_no_vowels() {
        assert_eq!(safe_text(1_234_567_890), "56789bcdf4");
    }
}
