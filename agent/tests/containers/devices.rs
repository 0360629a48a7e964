//! A container that is given a device of the node.

use crate::support::on_host;
use coracle_agent::runtime::{Device, Mount, Runtime};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of 1 MiB as a disk, until it is dropped.
struct Disk(PathBuf);

impl Disk {
    fn new(directory: &Path) -> Self {
        let file = directory.join("disk");
        std::fs::write(&file, vec![b'x'; 1 << 20]).unwrap();
        let made = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(&file)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        Self(String::from_utf8(made.stdout).unwrap().trim().into())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.0).status();
    }
}

#[test]
fn a_device_is_opened_as_it_was_given() {
    on_host(async |host| {
        let disk = Disk::new(host.directory.path());
        let line = "/bin/busybox head -c 512 /dev/raw | wc -c; (echo y > /dev/raw) 2>&1; \
                    /bin/busybox head -c 1 /dev/raw";
        let run = async |read_only| {
            let mut config = host.shell(line);
            config.devices.push(Device {
                container_path: "/dev/raw".into(),
                host_path: disk.0.clone(),
                read_only,
            });
            let id = host.start(config.clone()).await;
            host.exited(&id).await;
            std::fs::read_to_string(&config.log_path).unwrap()
        };
        let said = run(true).await;
        assert!(said.contains(" 512\n") && said.ends_with(" x\n"), "{said}");
        assert!(said.contains("Operation not permitted"), "{said}");
        let said = run(false).await;
        assert!(said.ends_with(" y\n"), "{said}");
    });
}

#[test]
fn what_is_no_device_is_not_given_as_one() {
    on_host(async |host| {
        let mut config = host.shell("true");
        config.devices.push(Device {
            container_path: "/dev/raw".into(),
            host_path: "/etc/passwd".into(),
            read_only: false,
        });
        let sandbox = host.sandbox().await;
        let id = host.runtime.create_container(&sandbox, config).await;
        let started = host.runtime.start_container(&id.unwrap()).await;
        let error = started.unwrap_err().to_string();
        assert!(
            error.contains("/etc/passwd is not a device node"),
            "{error}"
        );
    });
}

/// libcontainer makes nodes and links in the directory that it takes for the container's own.
#[test]
fn the_nodes_devices_are_shown_and_stay_as_they_are() {
    on_host(async |host| {
        // What libcontainer would take away, and what it would make.
        let look = || {
            let terminal = std::fs::symlink_metadata("/dev/ptmx").unwrap();
            let memory = std::fs::symlink_metadata("/dev/kcore");
            (terminal.ino(), memory.is_ok())
        };
        let before = look();
        let mut config = host.shell("ls /dev/loop-control; echo x > /dev/null");
        config.security.privileged = true;
        config.mounts.push(Mount {
            container_path: "/dev".into(),
            host_path: "/dev".into(),
            ..Mount::default()
        });
        let (status, said) = host.run(config).await;
        assert_eq!(status.exit_code, Some(0), "{said}");
        assert_eq!(said, "stdout: /dev/loop-control");
        assert_eq!(look(), before);
    });
}
