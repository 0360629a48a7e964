//! Keys that the right passphrase opens, and nothing else.

use super::*;
use crate::snapshots::key_files::tests::{files, site};

const WORDS: &str = "correct horse battery staple";

#[test]
fn keys_are_opened_by_their_passphrase_alone() {
    let site = site();
    let files = files(&site);
    let sealed = SealingKey::of_test(WORDS).seal(&files);
    assert!(sealed.open(WORDS).unwrap() == files);
    let text = serde_json::to_string(&sealed).unwrap();
    let read: SealedKeys = serde_json::from_str(&text).unwrap();
    assert!(read.open(WORDS).unwrap() == files);
    for wrong in [
        "correct horse battery stable",
        "",
        WORDS.trim_end_matches('e'),
    ] {
        let refused = sealed.open(wrong).unwrap_err();
        assert!(matches!(refused, KeyFilesError::Passphrase), "{refused}");
    }
    let mut changed = STANDARD.decode(&sealed.sealed).unwrap();
    changed[7] ^= 1;
    let changed = SealedKeys {
        sealed: STANDARD.encode(changed),
        ..sealed.clone()
    };
    assert!(matches!(
        changed.open(WORDS),
        Err(KeyFilesError::Passphrase)
    ));
    let again = SealingKey::of_test(WORDS).seal(&files);
    assert!(again.salt != sealed.salt && again.sealed != sealed.sealed);
}

#[test]
fn a_server_seals_with_what_a_client_made_of_its_passphrase() {
    let site = site();
    let files = files(&site);
    let text = SealingKey::of_test(WORDS).to_text();
    assert!(!text.contains("horse"));
    let sealed = SealingKey::from_text(text.as_bytes()).unwrap().seal(&files);
    assert!(sealed.open(WORDS).unwrap() == files);
    for bad in ["", "{}", &text.replace("1000", "0")] {
        assert!(SealingKey::from_text(bad.as_bytes()).is_none(), "{bad}");
    }
}

#[test]
fn what_is_made_for_a_snapshot_is_as_slow_as_it_should_be() {
    let made = SealingKey::new(WORDS).unwrap();
    assert_eq!(made.iterations, ITERATIONS);
}

#[test]
fn a_file_cannot_keep_its_reader_busy() {
    let site = site();
    let sealed = SealingKey::of_test(WORDS).seal(&files(&site));
    for iterations in [0, ITERATIONS_MAX + 1, u32::MAX] {
        let sealed = SealedKeys {
            iterations,
            ..sealed.clone()
        };
        let refused = sealed.open(WORDS).unwrap_err().to_string();
        assert!(refused.contains("out of bounds"), "{refused}");
    }
}
