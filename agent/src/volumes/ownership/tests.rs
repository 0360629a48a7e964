//! Files of a volume are given to a group. As root: only root gives files away.

use super::{LEVELS_MAX, Owner, give};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

const OWNER: Owner = Owner {
    group: 1234,
    read_only: false,
    root_says_all: false,
};

fn shown(path: &Path) -> (u32, u32) {
    let meta = fs::symlink_metadata(path).unwrap();
    (meta.gid(), meta.mode() & 0o7777)
}

fn volume() -> tempfile::TempDir {
    let volume = tempfile::tempdir().unwrap();
    let inner = volume.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("file"), "").unwrap();
    for (path, mode) in [("inner", 0o755), ("inner/file", 0o600), ("", 0o755)] {
        let path = volume.path().join(path);
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    volume
}

#[test]
fn all_below_the_root_belongs_to_the_group() {
    let volume = volume();
    give(volume.path(), OWNER).unwrap();
    assert_eq!(shown(volume.path()), (1234, 0o2775));
    assert_eq!(shown(&volume.path().join("inner")), (1234, 0o2775));
    assert_eq!(shown(&volume.path().join("inner/file")), (1234, 0o660));
}

#[test]
fn what_a_link_leads_to_stays_as_it_is() {
    let (volume, outside) = (volume(), tempfile::tempdir().unwrap());
    let target = outside.path().join("target");
    fs::write(&target, "").unwrap();
    fs::set_permissions(&target, Permissions::from_mode(0o600)).unwrap();
    symlink(&target, volume.path().join("link")).unwrap();
    symlink(outside.path(), volume.path().join("inner/away")).unwrap();
    give(volume.path(), OWNER).unwrap();
    assert_eq!(shown(&target).1, 0o600);
    assert_ne!(shown(&target).0, 1234);
    assert_eq!(shown(&volume.path().join("link")).0, 1234);
}

#[test]
fn a_root_that_is_right_says_so_of_all_when_asked() {
    let volume = volume();
    let lazy = Owner {
        root_says_all: true,
        ..OWNER
    };
    give(volume.path(), lazy).unwrap();
    let file = volume.path().join("inner/file");
    assert_eq!(shown(&file), (1234, 0o660));
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    give(volume.path(), lazy).unwrap();
    assert_eq!(shown(&file), (1234, 0o600));
    give(volume.path(), OWNER).unwrap();
    assert_eq!(shown(&file), (1234, 0o660));
}

#[test]
fn a_volume_that_is_only_read_is_not_made_writable() {
    let volume = volume();
    let reader = Owner {
        read_only: true,
        ..OWNER
    };
    give(volume.path(), reader).unwrap();
    assert_eq!(shown(volume.path()), (1234, 0o2755));
    assert_eq!(shown(&volume.path().join("inner/file")), (1234, 0o640));
}

#[test]
fn directories_that_are_too_deep_are_told_of() {
    let volume = tempfile::tempdir().unwrap();
    let deep = |levels: usize| volume.path().join(vec!["d"; levels - 1].join("/"));
    fs::create_dir_all(deep(LEVELS_MAX)).unwrap();
    give(volume.path(), OWNER).unwrap();
    assert_eq!(shown(&deep(LEVELS_MAX)).0, 1234);
    fs::create_dir(deep(LEVELS_MAX + 1)).unwrap();
    assert_eq!(
        give(volume.path(), OWNER).unwrap_err().to_string(),
        "more than 256 directories are below one another"
    );
}
