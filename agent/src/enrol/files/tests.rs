//! What lies beside a key's file.

use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn a_key_goes_into_no_file_of_another() {
    let directory = tempfile::tempdir().unwrap();
    let files = Files::open(directory.path()).unwrap();
    let theirs = directory.path().join("theirs");
    fs::write(&theirs, "theirs").unwrap();
    // Where it used to be written first.
    symlink(&theirs, files.path("node.pem.new")).unwrap();
    let pair = Pair {
        certificate: "-----BEGIN CERTIFICATE-----".to_owned(),
        key: "key".to_owned(),
    };
    files.set_pair("node", &pair).unwrap();
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs");
    assert_eq!(files.pair("node").unwrap().unwrap().key, "key\n");
    let written = fs::symlink_metadata(files.path("node.pem")).unwrap();
    assert!(written.is_file());
    assert_eq!(written.permissions().mode() & 0o777, 0o600);
}
