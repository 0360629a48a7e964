//! What is in the file, and what counts as a key.

use super::{KeyPair, PublicKey};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn the_key_is_kept_where_nobody_else_reads_it() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("network.wireguard");
    let made = KeyPair::keep(&path).unwrap();
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    let again = KeyPair::keep(&path).unwrap();
    assert_eq!(again.public, made.public);
    assert_eq!(again.secret.to_bytes(), made.secret.to_bytes());
    // What is shown of it is the public half.
    let shown = format!("{made:?}");
    assert_eq!(shown, format!("KeyPair({})", made.public));
    for damaged in [&b"half a ke"[..], b"", &[0xff; 44]] {
        fs::write(&path, damaged).unwrap();
        let other = KeyPair::keep(&path).unwrap();
        assert_ne!(other.public, made.public);
        assert_eq!(KeyPair::keep(&path).unwrap().public, other.public);
    }
    assert!(KeyPair::keep(&scratch.path().join("no/such")).is_err());
}

#[test]
fn keys_are_read_as_they_are_written() {
    let key = KeyPair::new().public;
    assert_eq!(PublicKey::parse(&key.to_string()), Some(key));
    assert_eq!(PublicKey::parse(&format!(" {key}\n")), Some(key));
    for wrong in ["", "AAAA", "no base64!", &"A".repeat(60)] {
        assert_eq!(PublicKey::parse(wrong), None, "{wrong:?}");
    }
}
