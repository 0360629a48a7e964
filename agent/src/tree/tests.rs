//! Trees that somebody made to be hard to remove.

use super::*;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::os::unix::fs::symlink;

/// More levels than a process may open files, with a file and a link on each.
const DEEP: usize = 5_000;

/// Paths of such a length are refused: by descriptors.
fn make_deep(top: &Path, outside: &Path) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = rustix::fs::open(top, flags, Mode::empty()).unwrap();
    for _ in 0..DEEP {
        let create = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&at, "file", create, Mode::RUSR).unwrap();
        rustix::fs::symlinkat(outside, &at, "link").unwrap();
        rustix::fs::mkdirat(&at, "directory", Mode::RWXU).unwrap();
        at = rustix::fs::openat(&at, "directory", flags, Mode::empty()).unwrap();
    }
}

fn outside(base: &Path) -> std::path::PathBuf {
    let outside = base.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "kept").unwrap();
    outside
}

#[track_caller]
fn is_kept(outside: &Path) {
    assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
}

#[test]
fn a_tree_may_be_deeper_than_files_may_be_open() {
    let base = tempfile::tempdir().unwrap();
    let outside = outside(base.path());
    let top = base.path().join("top");
    fs::create_dir(&top).unwrap();
    make_deep(&top, &outside);
    remove(&top).unwrap();
    assert!(!top.exists());
    is_kept(&outside);
}

#[test]
fn what_links_lead_to_stays() {
    let base = tempfile::tempdir().unwrap();
    let outside = outside(base.path());
    let top = base.path().join("top");
    fs::create_dir_all(top.join("deep/er/still")).unwrap();
    for (target, at) in [
        (outside.as_path(), "absolute"),
        (Path::new("../../outside"), "deep/relative"),
        (outside.as_path(), "deep/er/absolute"),
        (Path::new(".."), "deep/er/up"),
        (Path::new("nowhere"), "deep/er/still/dangling"),
    ] {
        symlink(target, top.join(at)).unwrap();
    }
    remove(&top).unwrap();
    assert!(!top.exists());
    is_kept(&outside);
    // Nor is the tree itself a way out.
    symlink(&outside, &top).unwrap();
    remove(&top).unwrap();
    assert!(fs::symlink_metadata(&top).is_err());
    is_kept(&outside);
}

#[test]
fn many_directories_with_any_names_go() {
    let base = tempfile::tempdir().unwrap();
    let top = base.path().join("top");
    for number in 0..40 {
        for inner in ["a/b/c", "a/d/e", ".coracle-removed-3/f/g"] {
            fs::create_dir_all(top.join(format!("{number}")).join(inner)).unwrap();
        }
        let taken = top.join(format!(".coracle-removed-{number}"));
        match number % 3 {
            0 => fs::write(taken, "a file").unwrap(),
            1 => fs::create_dir_all(taken.join("full/of")).unwrap(),
            _ => fs::create_dir(taken).unwrap(),
        }
    }
    remove(&top).unwrap();
    assert!(!top.exists());
}

#[test]
fn what_is_no_directory_is_refused_as_elsewhere() {
    let base = tempfile::tempdir().unwrap();
    let missing = remove(&base.path().join("missing")).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    fs::write(base.path().join("file"), "kept").unwrap();
    let file = remove(&base.path().join("file")).unwrap_err();
    assert_eq!(file.kind(), io::ErrorKind::NotADirectory);
    assert!(base.path().join("file").exists());
}

#[test]
fn what_is_mounted_below_is_not_entered() {
    let base = tempfile::tempdir().unwrap();
    let outside = outside(base.path());
    let top = base.path().join("top");
    let place = top.join("a/b");
    fs::create_dir_all(&place).unwrap();
    let none = None::<&str>;
    // Of the same disk: only the mount tells that it is elsewhere.
    if mount(Some(&outside), &place, none, MsFlags::MS_BIND, none).is_err() {
        return; // Only root may mount; the tests are run by root.
    }
    let refused = remove(&top);
    umount2(&place, MntFlags::MNT_DETACH).unwrap();
    assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::ResourceBusy);
    is_kept(&outside);
    remove(&top).unwrap();
}

/// Directories of a lower layer of an overlay cannot be moved.
#[test]
fn what_cannot_be_moved_up_is_emptied_where_it_is() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path();
    let none = None::<&str>;
    if mount(Some("none"), base, Some("tmpfs"), MsFlags::empty(), none).is_err() {
        return; // Only root may mount; the tests are run by root.
    }
    let at = |name: &str| base.join(name).display().to_string();
    fs::create_dir_all(base.join("lower/top/a/b/c/d/e/f")).unwrap();
    fs::write(base.join("lower/top/a/b/c/file"), "gone").unwrap();
    for name in ["upper", "work", "merged"] {
        fs::create_dir(base.join(name)).unwrap();
    }
    let options = format!(
        "lowerdir={},upperdir={},workdir={},redirect_dir=off",
        at("lower"),
        at("upper"),
        at("work")
    );
    let merged = base.join("merged");
    let (kind, flags) = (Some("overlay"), MsFlags::empty());
    let mounted = mount(Some("none"), &merged, kind, flags, Some(options.as_str()));
    let removed = mounted.map(|()| {
        let fenced = fs::rename(merged.join("top/a/b"), merged.join("b")).unwrap_err();
        let removed = remove(&merged.join("top"));
        let is_gone = !merged.join("top").exists();
        umount2(&merged, MntFlags::MNT_DETACH).unwrap();
        (fenced.kind(), removed, is_gone)
    });
    umount2(base, MntFlags::MNT_DETACH).unwrap();
    let (fenced, removed, is_gone) = removed.unwrap();
    assert_eq!(fenced, io::ErrorKind::CrossesDevices);
    removed.unwrap();
    assert!(is_gone);
}
