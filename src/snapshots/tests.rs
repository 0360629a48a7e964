//! What is decided before a file is touched.

use super::*;

#[test]
fn a_passphrase_is_the_first_line_and_long_enough() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("words");
    let path = file.to_str().unwrap();
    let read = |text: &str| {
        std::fs::write(&file, text).unwrap();
        passphrase(Some(path))
    };
    assert_eq!(passphrase(None), Ok(None));
    let words = Some("correct horse".to_owned());
    assert_eq!(read("correct horse \nbattery"), Ok(words));
    for short in ["", "\ncorrect horse", "eleven char"] {
        let told = read(short).unwrap_err().to_string();
        assert!(told.starts_with("--passphrase-file"), "{told}");
        assert!(told.contains("12 characters or more"), "{told}");
    }
    let told = passphrase(Some("/nowhere")).unwrap_err().to_string();
    assert!(told.contains("cannot be read"), "{told}");
}

/// JSON numbers of clients that count in floating point stay whole too.
#[test]
fn the_floor_of_revisions_grows_every_minute_and_stays_small_enough_for_decades() {
    let floor = |text: &str| revision_floor(text.parse().unwrap());
    assert_eq!(floor("1970-01-01T00:00:00Z"), Revision(0));
    let (before, after) = (floor("2026-06-01T00:00:59Z"), floor("2026-06-01T00:01:00Z"));
    assert_eq!(after.0 - before.0, REVISIONS_OF_A_MINUTE);
    assert!(floor("2090-01-01T00:00:00Z").0 < 1 << 53);
}
