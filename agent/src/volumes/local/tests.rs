//! Local volumes are bound, used and let go of; what they hold stays.

use super::{Wanted, attributes, plan, set_up, take_down};
use crate::mounts::{self, Attributes};
use crate::volumes::ownership::Owner;
use k8s_openapi::api::core::v1::PersistentVolume;
use libcontainer::syscall::linux::{MOUNT_ATTR_NOEXEC, MOUNT_ATTR_RDONLY};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

fn volume(spec: Value) -> PersistentVolume {
    serde_json::from_value(json!({"metadata": {"name": "pv"}, "spec": spec})).unwrap()
}

fn wanted(volume: &PersistentVolume) -> Wanted<'_> {
    Wanted {
        volume,
        read_only: false,
        is_block: false,
        made_here: None,
    }
}

#[test]
fn a_local_volume_is_bound_and_outlives_its_pod() {
    let scratch = tempfile::tempdir().unwrap();
    let (source, pod) = (scratch.path().join("disk"), scratch.path().join("pod"));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("kept"), "old").unwrap();
    let volume = volume(json!({
        "local": {"path": source}, "mountOptions": ["noexec,nosuid"],
    }));
    let wanted = wanted(&volume);
    let found = plan(&pod, wanted).unwrap();
    let owner = Owner {
        group: 1234,
        read_only: false,
        root_says_all: false,
    };
    for _ in 0..2 {
        set_up(wanted, &found, Some(owner)).unwrap();
    }
    fs::write(found.path.join("new"), "").unwrap();
    assert_eq!(mounts::below(&pod).unwrap().len(), 1);
    assert_eq!(fs::metadata(source.join("kept")).unwrap().gid(), 1234);
    take_down(&pod).unwrap();
    take_down(&pod).unwrap();
    assert!(!found.path.exists());
    assert!(source.join("kept").exists() && source.join("new").exists());
}

/// What a driver or a person put there is not the agent's to remove.
#[test]
fn a_place_with_something_in_it_is_not_removed() {
    let pod = tempfile::tempdir().unwrap();
    let place = pod.path().join("volumes/kubernetes.io~local-volume/pv");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("precious"), "").unwrap();
    assert!(take_down(pod.path()).is_err());
    assert!(place.join("precious").exists());
}

#[test]
fn a_volume_that_only_is_read_is_mounted_so() {
    let scratch = tempfile::tempdir().unwrap();
    let (source, pod) = (scratch.path().join("disk"), scratch.path().join("pod"));
    fs::create_dir(&source).unwrap();
    let volume = volume(json!({"local": {"path": source}}));
    let wanted = Wanted {
        read_only: true,
        ..wanted(&volume)
    };
    let found = plan(&pod, wanted).unwrap();
    set_up(wanted, &found, None).unwrap();
    assert!(fs::write(found.path.join("x"), "").is_err());
    take_down(&pod).unwrap();
}

fn refusal(spec: Value, is_block: bool) -> String {
    let volume = volume(spec);
    let wanted = Wanted {
        is_block,
        ..wanted(&volume)
    };
    let found = plan(Path::new("/nonexistent/pod"), wanted).unwrap();
    let refusal = set_up(wanted, &found, None).unwrap_err();
    format!("{} : {}", refusal.step, refusal.why)
}

#[test]
fn what_cannot_be_had_is_said_in_upstreams_words() {
    assert_eq!(
        refusal(json!({"local": {"path": "/nonexistent"}}), false),
        "MountVolume.NewMounter initialization failed : path \"/nonexistent\" does not exist"
    );
    assert_eq!(
        refusal(json!({"local": {"path": "/dev/null"}}), false),
        "MountVolume.NewMounter initialization failed : only directory and block device are \
         supported"
    );
    assert_eq!(
        refusal(json!({"local": {"path": "/tmp"}}), true),
        "MapVolume.NewBlockVolumeMapper initialization failed : /tmp is no block device"
    );
    assert_eq!(
        refusal(json!({"local": {"path": "/tmp/../etc"}}), false),
        "MountVolume.SetUp failed : invalid path: /tmp/../etc"
    );
    let options = json!({"hostPath": {"path": "/tmp"}, "mountOptions": ["ro"]});
    assert_eq!(
        refusal(options, false),
        "MountVolume.MountOptionSupport check failed : Mount options are not supported for this \
         volume type"
    );
    let absent = json!({"hostPath": {"path": "/nonexistent", "type": "Directory"}});
    assert_eq!(
        refusal(absent, false),
        "MountVolume.SetUp failed : hostPath type check failed: /nonexistent is not a directory"
    );
}

#[test]
fn options_become_attributes_of_the_mount() {
    let of = |options: &[&str]| {
        let options: Vec<String> = options.iter().map(|one| (*one).to_owned()).collect();
        attributes(&options, false)
    };
    let expected = Attributes {
        set: MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC,
        ..Attributes::default()
    };
    assert_eq!(of(&["ro,noexec", "rw"]), Ok(expected));
    assert_eq!(
        of(&["size=1"]),
        Err("unknown mount option \"size=1\"".to_owned())
    );
}
