//! Walks over small trees.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn blocks_and_files_count_links_do_not() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let empty = measure(directory.path()).unwrap();
    assert_eq!(empty.inodes, 1);
    fs::create_dir_all(at("a/b")).unwrap();
    fs::write(at("a/b/file"), vec![1; 100_000]).unwrap();
    fs::hard_link(at("a/b/file"), at("a/again")).unwrap();
    symlink("/", at("a/root")).unwrap();
    let used = measure(directory.path()).unwrap();
    assert_eq!(used.inodes, 5, "the top, a, b, the file and the link");
    let more = used.bytes - empty.bytes;
    assert!((100_000..200_000).contains(&more), "once alone: {more}");
}

#[test]
fn a_walk_is_bounded_and_nothing_is_no_error() {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..20 {
        fs::write(directory.path().join(number.to_string()), "").unwrap();
    }
    assert_eq!(measure_up_to(directory.path(), 5).unwrap().inodes, 6);
    let missing = directory.path().join("no/such");
    assert_eq!(measure(&missing).unwrap(), DiskUse::default());
}

#[test]
fn a_root_that_is_a_link_is_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("link");
    symlink("/usr", &link).unwrap();
    assert!(measure(&link).unwrap().inodes <= 1);
}
