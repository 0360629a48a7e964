//! Comparing secrets in a time that does not tell how much of a guess was right.

use ring::digest::{SHA256, digest};
use subtle::ConstantTimeEq;

/// By their hashes, so that not even the length of the kept one shows.
pub fn same_secret(kept: &[u8], shown: &[u8]) -> bool {
    same_hash(
        digest(&SHA256, kept).as_ref(),
        digest(&SHA256, shown).as_ref(),
    )
}

/// Both of the same length; every byte is looked at.
pub(super) fn same_hash(kept: &[u8], shown: &[u8]) -> bool {
    kept.ct_eq(shown).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equal_secrets_are_the_same() {
        let kept = b"0123456789abcdef";
        assert!(same_secret(kept, kept));
        assert!(same_secret(b"", b""));
        for place in 0..kept.len() {
            let mut shown = *kept;
            shown[place] ^= 1;
            assert!(!same_secret(kept, &shown), "differs at {place}");
        }
        // Neither a beginning nor a continuation will do, nor nothing.
        for length in 0..kept.len() {
            assert!(!same_secret(kept, &kept[..length]), "{length} bytes");
            assert!(!same_secret(&kept[..length], kept), "{length} bytes");
        }
        assert!(!same_secret(kept, b"0123456789abcdef\0"));
    }

    #[test]
    fn hashes_are_compared_whole() {
        assert!(same_hash(&[1, 2, 3], &[1, 2, 3]));
        assert!(!same_hash(&[1, 2, 3], &[1, 2, 4]));
        assert!(!same_hash(&[1, 2, 3], &[0, 2, 3]));
        assert!(!same_hash(&[1, 2, 3], &[1, 2]));
    }
}
