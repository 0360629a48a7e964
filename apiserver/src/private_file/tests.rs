//! What lies beside a secret's file, or in its place.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn a_secret_goes_into_no_file_of_another() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("theirs"), "theirs").unwrap();
    fs::set_permissions(at("theirs"), Permissions::from_mode(0o666)).unwrap();
    // Where it used to be written first, and where it is to be.
    symlink(at("theirs"), at("jane.new")).unwrap();
    symlink(at("theirs"), at("jane.kubeconfig")).unwrap();
    write(&at("jane.kubeconfig"), "secret").unwrap();
    assert_eq!(fs::read_to_string(at("theirs")).unwrap(), "theirs");
    assert_eq!(fs::read_to_string(at("jane.kubeconfig")).unwrap(), "secret");
    let written = fs::symlink_metadata(at("jane.kubeconfig")).unwrap();
    assert!(written.is_file());
    assert_eq!(written.permissions().mode() & 0o777, MODE);
    assert!(fs::symlink_metadata(at("jane.new")).unwrap().is_symlink());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3);
}

#[test]
fn a_file_that_cannot_be_written_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let taken = directory.path().join("taken");
    fs::create_dir(&taken).unwrap();
    write(&taken, "secret").unwrap_err();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    write(&directory.path().join("none/file"), "secret").unwrap_err();
}
