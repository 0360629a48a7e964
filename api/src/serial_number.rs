//! Serial numbers of certificates, which say when a certificate was issued.
//!
//! The dates in a certificate cannot: those of this cluster begin long before they are made, for
//! machines whose clock is not set. So that all certificates of a user up to a moment can be taken
//! back, the moment is in the number: a mark, seconds since the epoch, and random bytes. Pure.

/// A positive number needs no more (RFC 5280, 4.1.2.2).
pub const BYTES: usize = 16;
pub const RANDOM_BYTES: usize = 10;
/// 2026-01-01T00:00:00Z: before this the clock of a machine has not been set yet.
pub const CLOCK_FLOOR_SECONDS: u32 = 1_767_225_600;
const MARK: u8 = 0x43;
const SECONDS_MAX: i64 = (1 << 40) - 1;

/// The number of a certificate that is issued now.
pub fn new(now_seconds: i64, random: [u8; RANDOM_BYTES]) -> [u8; BYTES] {
    let seconds = now_seconds.clamp(0, SECONDS_MAX).to_be_bytes();
    let mut number = [0; BYTES];
    number[0] = MARK;
    number[1..6].copy_from_slice(&seconds[3..]);
    number[6..].copy_from_slice(&random);
    number
}

/// When the certificate of this number was issued, in seconds; `None` for another's number.
pub fn issued_at(number: &[u8]) -> Option<i64> {
    match number {
        [MARK, a, b, c, d, e, random @ ..] if random.len() == RANDOM_BYTES => {
            Some(i64::from_be_bytes([0, 0, 0, *a, *b, *c, *d, *e]))
        }
        _ => None,
    }
}

/// A number without leading zero bytes: the encoding puts one before a high first bit, and tools
/// leave it out.
pub fn significant(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_says_when() {
        for seconds in [0, 1, 1_780_000_000, SECONDS_MAX] {
            assert_eq!(issued_at(&new(seconds, [0xff; 10])), Some(seconds));
        }
        assert_eq!(issued_at(&new(-5, [0; 10])), Some(0));
        assert_eq!(issued_at(&new(i64::MAX, [0; 10])), Some(SECONDS_MAX));
        assert_eq!(issued_at(&[0x44; 16]), None);
        assert_eq!(issued_at(&[MARK; 15]), None);
    }
}
