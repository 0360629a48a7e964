//! Every bit of a snapshot counts, and none may be missing.

use super::*;
use crate::record::Operation;

fn record(key: &str, value: &str) -> Numbered {
    let record = Record {
        operation: Operation::Put,
        partition: "apps/deployments".into(),
        key: key.into(),
        created: Revision(3),
        previous: None,
        value: bytes::Bytes::copy_from_slice(value.as_bytes()),
    };
    (Revision(7), record)
}

fn snapshot() -> Vec<u8> {
    snapshot_of(Revision(9))
}

fn snapshot_of(revision: Revision) -> Vec<u8> {
    let mut bytes = Vec::new();
    let entries = [record("a", "one"), record("b", "")];
    let codec = Codec::default();
    write(&mut bytes, &codec, revision, 2, entries.into_iter()).unwrap();
    bytes
}

/// Sums are no secret: whoever makes a file up makes them fit.
#[test]
fn revisions_that_no_store_has_are_damage() {
    let told = |revision| {
        let bytes = snapshot_of(revision);
        let told = check_snapshot(bytes.as_slice()).unwrap_err().to_string();
        assert!(read_snapshot(bytes.as_slice(), None).is_err());
        told
    };
    assert_eq!(
        told(Revision(u64::MAX)),
        "no store comes to revision 18446744073709551615"
    );
    assert_eq!(told(Revision(6)), "it is of revision 6 and has one of 7");
    assert!(check_snapshot(snapshot_of(Revision::MAX).as_slice()).is_ok());
}

#[test]
fn what_was_written_is_read_and_what_follows_is_left() {
    let mut bytes = snapshot();
    bytes.extend_from_slice(b"more");
    let mut input = bytes.as_slice();
    let read = read_snapshot(&mut input, None).unwrap();
    assert_eq!(read.revision, Revision(9));
    assert_eq!(read.entries, [record("a", "one"), record("b", "")]);
    assert_eq!(input, b"more");
    let facts = SnapshotFacts {
        revision: Revision(9),
        entries: 2,
        sealed: 0,
    };
    assert_eq!(check_snapshot(bytes.as_slice()).unwrap(), facts);
}

#[test]
fn a_flip_of_any_bit_is_damage() {
    let bytes = snapshot();
    for place in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[place / 8] ^= 1 << (place % 8);
        let checked = check_snapshot(flipped.as_slice());
        let checked = checked.expect_err("a check saw no flip");
        assert!(matches!(checked, SnapshotFileError::Damaged(_)), "{place}");
        assert!(read_snapshot(flipped.as_slice(), None).is_err(), "{place}");
    }
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_damage() {
    let bytes = snapshot();
    for length in 0..bytes.len() {
        let told = check_snapshot(&bytes[..length]).unwrap_err().to_string();
        assert_eq!(told, "it is cut off", "{length}");
    }
}
