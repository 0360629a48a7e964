//! Devices are given as the node has them. As root: only root makes nodes.

use super::given;
use crate::images::manifest::ImageConfig;
use crate::runtime::contract::{ContainerConfig, ContainerId, Device, SandboxConfig, SandboxId};
use crate::runtime::record::{ContainerRecord, SandboxRecord};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use std::path::Path;

fn record(devices: &[(&str, &Path)]) -> ContainerRecord {
    let devices = devices.iter().map(|(container_path, host_path)| Device {
        container_path: container_path.into(),
        host_path: host_path.to_path_buf(),
        read_only: false,
    });
    ContainerRecord {
        id: ContainerId("c".into()),
        sandbox: SandboxRecord {
            id: SandboxId("s".into()),
            config: SandboxConfig::default(),
            created_at: jiff::Timestamp::UNIX_EPOCH,
            cgroup: String::new(),
            boot_id: String::new(),
        },
        sandbox_directory: "/run/s".into(),
        config: ContainerConfig {
            devices: devices.collect(),
            ..ContainerConfig::default()
        },
        created_at: jiff::Timestamp::UNIX_EPOCH,
        image_id: String::new(),
        image: ImageConfig::default(),
        layers_count: 1,
        shim_cgroup: String::new(),
    }
}

#[test]
fn a_device_is_the_nodes_wherever_the_container_has_it() {
    let scratch = tempfile::tempdir().unwrap();
    let disk = scratch.path().join("disk");
    mknod(
        &disk,
        SFlag::S_IFBLK,
        Mode::from_bits_truncate(0o660),
        makedev(7, 9),
    )
    .unwrap();
    std::os::unix::fs::chown(&disk, Some(12), Some(34)).unwrap();
    let asked = [("/dev//raw", &*disk), ("data/./raw", &*disk)];
    let found = given(&record(&asked)).unwrap();
    let [in_dev, elsewhere] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!((in_dev.uid, in_dev.gid), (12, 34));
    assert_eq!((in_dev.kind, in_dev.major, in_dev.minor), ('b', 7, 9));
    assert_eq!(in_dev.path, Path::new("/dev/raw"));
    assert_eq!(elsewhere.path, Path::new("/data/raw"));
    assert!(!in_dev.is_bound && elsewhere.is_bound);
}

#[test]
fn a_place_is_of_one_device() {
    let null = Path::new("/dev/null");
    let asked = [("/dev/raw", null), ("/dev/./raw", null)];
    let error = given(&record(&asked)).unwrap_err();
    assert_eq!(error.to_string(), "two devices are to be /dev/raw");
    let error = given(&record(&[("/dev/raw", Path::new("/tmp"))])).unwrap_err();
    assert_eq!(error.to_string(), "/tmp is not a device node");
}
