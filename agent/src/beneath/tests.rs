//! Links inside are followed, links out of the directory are not, nothing is made outside.

use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

/// A directory `inside`, open to all, beside a directory `outside`.
fn scratch() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let (inside, outside) = (
        scratch.path().join("inside"),
        scratch.path().join("outside"),
    );
    fs::create_dir(&inside).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::set_permissions(&inside, fs::Permissions::from_mode(0o2777)).unwrap();
    (scratch, inside, outside)
}

fn place(opened: &OwnedFd) -> PathBuf {
    use std::os::fd::AsRawFd;
    fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd())).unwrap()
}

#[test]
fn what_is_missing_is_made_as_the_root_is() {
    let (_scratch, inside, _) = scratch();
    let opened = open_or_make(&inside, Path::new("a/./b/c")).unwrap();
    assert_eq!(place(&opened), inside.canonicalize().unwrap().join("a/b/c"));
    for path in ["a", "a/b", "a/b/c"] {
        let mode = inside.join(path).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o2777, "{path}");
    }
    fs::write(inside.join("a/file"), "").unwrap();
    open_or_make(&inside, Path::new("a/file")).unwrap();
    let below_a_file = open_or_make(&inside, Path::new("a/file/x"));
    assert!(matches!(below_a_file, Err(BeneathError::Unreachable(_))));
}

#[test]
fn links_may_lead_about_inside_only() {
    let (_scratch, inside, outside) = scratch();
    fs::create_dir_all(inside.join("a/b")).unwrap();
    symlink("a/b", inside.join("near")).unwrap();
    symlink(inside.join("a"), inside.join("absolute")).unwrap();
    symlink(".", inside.join("itself")).unwrap();
    let root = inside.canonicalize().unwrap();
    for (path, place_of) in [("near", "a/b"), ("absolute/b", "a/b"), ("near/x", "a/b/x")] {
        let opened = open_or_make(&inside, Path::new(path)).unwrap();
        assert_eq!(place(&opened), root.join(place_of), "{path}");
    }
    assert_eq!(place(&open(&inside, Path::new("itself")).unwrap()), root);
    symlink(&outside, inside.join("out")).unwrap();
    symlink(outside.join("new"), inside.join("dangling")).unwrap();
    let paths = ["out", "out/x/y", "dangling", "dangling/x", "../outside/x"];
    for path in paths.map(Path::new).into_iter().chain([outside.as_path()]) {
        assert!(open_or_make(&inside, path).is_err(), "{}", path.display());
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_part_that_becomes_a_link_meanwhile_is_refused() {
    let (_scratch, inside, outside) = scratch();
    fs::create_dir(outside.join("b")).unwrap();
    symlink(&outside, inside.join("a")).unwrap();
    // As found before `a` was changed.
    let root = inside.canonicalize().unwrap();
    let refused = open_plain(&root, &root.join("a/b"));
    assert!(matches!(refused, Err(BeneathError::Unreachable(_))));
    let parent = open_plain(&root, &root).unwrap();
    let refused = make_one(&parent, OsStr::new("a"), Mode::from_raw_mode(0o755));
    assert!(matches!(refused, Err(BeneathError::Unreachable(_))));
}
