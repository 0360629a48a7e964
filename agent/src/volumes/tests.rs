//! Volumes are made, mounted by path, and taken away.

use super::content::Contents;
use super::{Kept, Shown, VolumeError, is_read_only, tear_down};
use crate::beneath::BeneathError;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, VolumeMount};
use serde_json::json;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

fn pod() -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "p", "uid": "u"},
        "spec": {
            "containers": [],
            "securityContext": {"fsGroup": 1234},
            "volumes": [
                {"name": "disk", "emptyDir": {}},
                {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
            ],
        },
    }))
    .unwrap()
}

fn set_up(directory: &Path, pod: &Pod) -> Result<(), (String, VolumeError)> {
    super::set_up(directory, pod, &Contents::default(), Timestamp::UNIX_EPOCH)
}

/// By name: nobody changes anything here meanwhile.
fn mounted(
    directory: &Path,
    pod: &Pod,
    mount: &VolumeMount,
    sub_path: &str,
) -> Result<PathBuf, VolumeError> {
    let Shown { root, sub_path } =
        super::mounted(directory, &Kept::default(), pod, mount, sub_path)?;
    Ok(root.components().chain(sub_path.components()).collect())
}

fn mount(name: &str) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        ..VolumeMount::default()
    }
}

#[test]
fn volumes_below_a_link_go_too() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::create_dir(scratch.path().join("real")).unwrap();
    let link = scratch.path().join("link");
    symlink("real", &link).unwrap();
    let directory = link.join("u");
    set_up(&directory, &pod()).unwrap();
    tear_down(&directory).unwrap();
    assert!(!scratch.path().join("real/u").exists());
}

#[test]
fn empty_dirs_come_and_go() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("u");
    set_up(&directory, &pod()).unwrap();
    set_up(&directory, &pod()).unwrap();
    let disk = mounted(&directory, &pod(), &mount("disk"), "").unwrap();
    let meta = disk.metadata().unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.gid()), (0o2777, 1234));
    let memory = mounted(&directory, &pod(), &mount("memory"), "").unwrap();
    assert_ne!(memory.metadata().unwrap().dev(), meta.dev());
    let too_much = std::fs::write(memory.join("big"), vec![0; 2 << 20]).unwrap_err();
    assert_eq!(too_much.kind(), std::io::ErrorKind::StorageFull);
    tear_down(&directory).unwrap();
    assert!(!directory.exists());
    tear_down(&directory).unwrap();
}

#[test]
fn a_sub_path_stays_in_its_volume() {
    let scratch = tempfile::tempdir().unwrap();
    let mut pod = pod();
    pod.spec.as_mut().unwrap().volumes.as_mut().unwrap().pop();
    set_up(scratch.path(), &pod).unwrap();
    let inner = mounted(scratch.path(), &pod, &mount("disk"), "a/b").unwrap();
    assert!(inner.is_dir() && inner.ends_with("disk/a/b"));
    let mode = inner.metadata().unwrap().mode();
    assert_eq!(mode & 0o7777, 0o2777, "as the volume: any user may write");
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), inner.join("out")).unwrap();
    for path in ["../x", "/etc", "a/b/out", "a/b/out/new/deep"] {
        let refused = mounted(scratch.path(), &pod, &mount("disk"), path);
        let is_outside = matches!(
            refused,
            Err(VolumeError::SubPath {
                source: BeneathError::Outside,
                ..
            })
        );
        assert!(is_outside, "{path}");
    }
    let made = std::fs::read_dir(elsewhere.path()).unwrap().count();
    assert_eq!(made, 0, "nothing is made outside");
}

#[test]
fn names_the_volume_that_it_cannot_make() {
    let scratch = tempfile::tempdir().unwrap();
    let mut pod = pod();
    let volume = json!({"name": "x", "nfs": {"server": "s", "path": "/"}});
    pod.spec.as_mut().unwrap().volumes = Some(vec![serde_json::from_value(volume).unwrap()]);
    let (name, error) = set_up(scratch.path(), &pod).unwrap_err();
    assert_eq!(name, "x");
    assert!(matches!(error, VolumeError::UnknownKind(_)));
}

#[test]
fn secrets_are_kept_in_memory_and_read_only() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("u");
    let volumes = json!([
        {"name": "s", "secret": {"secretName": "s"}},
        {"name": "c", "configMap": {"name": "c"}},
    ]);
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "p", "uid": "u"},
        "spec": {"containers": [], "volumes": volumes},
    }))
    .unwrap();
    let mut contents = Contents::default();
    let (name, error) =
        super::set_up(&directory, &pod, &contents, Timestamp::UNIX_EPOCH).unwrap_err();
    assert_eq!(
        (name.as_str(), error.to_string()),
        ("s", "secret \"s\" not found".to_owned())
    );
    assert!(
        !directory.exists(),
        "nothing is made for what cannot be filled"
    );
    let secret = serde_json::from_value(json!({"data": {"k": "dg=="}})).unwrap();
    contents
        .objects
        .secrets
        .insert("s".to_owned(), Some(secret));
    let map = serde_json::from_value(json!({"data": {"k": "w"}})).unwrap();
    contents
        .objects
        .config_maps
        .insert("c".to_owned(), Some(map));
    for _ in 0..2 {
        super::set_up(&directory, &pod, &contents, Timestamp::UNIX_EPOCH).unwrap();
    }
    let secret = mounted(&directory, &pod, &mount("s"), "").unwrap();
    let map = mounted(&directory, &pod, &mount("c"), "").unwrap();
    let device = |path: &Path| path.metadata().unwrap().dev();
    assert_ne!(device(&secret), device(scratch.path()));
    assert_eq!(device(&map), device(scratch.path()));
    assert_eq!(std::fs::read_to_string(secret.join("k")).unwrap(), "v");
    let one = mounted(&directory, &pod, &mount("c"), "k").unwrap();
    assert_eq!(std::fs::read_to_string(one).unwrap(), "w");
    let mode = |path: &Path| path.metadata().unwrap().mode() & 0o7777;
    assert_eq!((mode(&secret), mode(&map)), (0o755, 0o755));
    let none = Kept::default();
    assert!(is_read_only(&none, &pod, "s") && is_read_only(&none, &pod, "c"));
    let map = serde_json::from_value(json!({"data": {"k": "new"}})).unwrap();
    contents
        .objects
        .config_maps
        .insert("c".to_owned(), Some(map));
    super::freshen(&directory, &pod, &contents, Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(
        std::fs::read_to_string(secret.with_file_name("s").join("k")).unwrap(),
        "v"
    );
    let map = mounted(&directory, &pod, &mount("c"), "").unwrap();
    assert_eq!(std::fs::read_to_string(map.join("k")).unwrap(), "new");
    tear_down(&directory).unwrap();
    assert!(!directory.exists());
    super::freshen(&directory, &pod, &contents, Timestamp::UNIX_EPOCH).unwrap();
    assert!(!directory.exists(), "nothing is written after the end");
}

#[test]
fn the_directory_of_all_pods_is_for_root() {
    let scratch = tempfile::tempdir().unwrap();
    let pods = scratch.path().join("agent/pods");
    for _ in 0..2 {
        super::make_pods_directory(&pods).unwrap();
        assert_eq!(pods.metadata().unwrap().mode() & 0o7777, 0o750);
        std::fs::set_permissions(&pods, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn memory_is_not_swapped_where_linux_can_help_it() {
    let scratch = tempfile::tempdir().unwrap();
    let volumes = json!([{"name": "m", "emptyDir": {"medium": "Memory"}}]);
    let mut pod = pod();
    pod.spec.as_mut().unwrap().volumes = Some(serde_json::from_value(volumes).unwrap());
    set_up(scratch.path(), &pod).unwrap();
    let memory = mounted(scratch.path(), &pod, &mount("m"), "").unwrap();
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let place = memory.to_str().unwrap();
    let line = table.lines().find(|line| line.contains(place)).unwrap();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let numbers: Vec<u32> = release.split('.').take(2).flat_map(str::parse).collect();
    assert_eq!(line.contains("noswap"), numbers >= vec![6, 3], "{line}");
    tear_down(scratch.path()).unwrap();
}
