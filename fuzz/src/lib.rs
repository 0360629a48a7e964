//! What the fuzz targets share: an input begins with the kind it speaks of.

use coracle_api::schema::{KnownKind, kinds};
use serde_json::Value;

/// Two bytes of the input choose a kind; the rest is for the target.
pub fn kind(data: &[u8]) -> Option<(&'static KnownKind, &[u8])> {
    let (number, rest) = data.split_at_checked(2)?;
    let number = usize::from(number[0]) << 8 | usize::from(number[1]);
    Some((&kinds()[number % kinds().len()], rest))
}

/// The apiVersion of a kind.
pub fn api_version(kind: &KnownKind) -> String {
    if kind.group.is_empty() {
        kind.version.to_owned()
    } else {
        format!("{}/{}", kind.group, kind.version)
    }
}

/// Two documents, parted by a byte that neither can hold.
pub fn halves(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = data.iter().position(|byte| *byte == 0xff)?;
    Some((&data[..at], &data[at + 1..]))
}

/// The bytes of a value as JSON.
pub fn bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("a Vec takes all")
}

/// How much of its input a decoder may make: names of fields are the input's own, but a quantity
/// of four bytes has up to twenty digits, and each null of a list is a value of its own.
pub fn assert_bounded(made: usize, given: usize) {
    assert!(made <= 32 * given + 1024, "{given} bytes became {made}");
}
