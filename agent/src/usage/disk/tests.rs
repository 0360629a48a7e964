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
    let bounds = Bounds {
        entries: 5,
        ..BOUNDS
    };
    let used = measure_up_to(directory.path(), bounds).unwrap();
    assert_eq!(used.inodes, 6);
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

#[test]
fn directories_that_wait_are_bounded_in_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for number in 0..9 {
        fs::create_dir_all(at(&format!("{number}/inside"))).unwrap();
    }
    let name = |length: usize| Pending {
        parent: Path::new("").into(),
        name: OsStr::new(&"n".repeat(length)).into(),
    };
    let inodes = |pending_bytes: usize| {
        let bounds = Bounds {
            pending_bytes,
            ..BOUNDS
        };
        measure_up_to(directory.path(), bounds).unwrap().inodes
    };
    let (one, below) = (name(1).bytes(), name("inside".len()).bytes());
    assert_eq!(inodes(9 * one + below), 19);
    assert_eq!(inodes(2 * one + below), 13, "three of nine are entered");
    // A path is as long as it is deep; it is not held once for each of its directories.
    let mut deep = at("deep");
    for _ in 0..20 {
        deep.push("d".repeat(50));
    }
    fs::create_dir_all(&deep).unwrap();
    for number in 0..9 {
        fs::create_dir(deep.join(number.to_string())).unwrap();
    }
    assert_eq!(inodes(20 * one), 19 + 1 + 20 + 9);
}
