//! What is mounted below a volume shows on the node, in the container, in both or in neither.

use crate::support::{Host, on_host, until};
use coracle_agent::runtime::{ContainerConfig, Mount, Propagation, Runtime};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::path::{Path, PathBuf};

const NONE: Option<&str> = None;

/// A directory of the node that is a shared mount of its own, until it is dropped.
struct Shared(PathBuf);

impl Shared {
    fn new(host: &Host) -> Self {
        let path = host.directory.path().join("volume");
        std::fs::create_dir_all(path.join("inner")).unwrap();
        mount(Some(&path), &path, NONE, MsFlags::MS_BIND, NONE).unwrap();
        mount(NONE, &path, NONE, MsFlags::MS_SHARED, NONE).unwrap();
        Self(path)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = umount2(&self.0.join("inner"), MntFlags::MNT_DETACH);
        let _ = umount2(&self.0, MntFlags::MNT_DETACH);
    }
}

fn mount_memory(on: &Path) {
    mount(Some("tmpfs"), on, Some("tmpfs"), MsFlags::empty(), NONE).unwrap();
}

fn with(config: ContainerConfig, path: &Path, propagation: Propagation) -> ContainerConfig {
    let volume = Mount {
        container_path: "/volume".into(),
        host_path: path.to_owned(),
        propagation,
        ..Mount::default()
    };
    let mut config = config;
    config.mounts.push(volume);
    config.security.privileged = true;
    config
}

#[test]
fn what_a_container_mounts_comes_back_to_the_node_when_asked() {
    on_host(async |host| {
        let shared = Shared::new(&host);
        let line = "/bin/busybox mount -t tmpfs none /volume/inner && echo deep > \
                    /volume/inner/file && while [ ! -e /volume/stop ]; do sleep 0.1; done; \
                    /bin/busybox umount /volume/inner";
        let config = with(host.shell(line), &shared.0, Propagation::Bidirectional);
        let id = host.start(config).await;
        let file = shared.0.join("inner/file");
        until("the mount shows on the node", async || {
            let text = std::fs::read_to_string(&file).ok();
            text.filter(|text| text == "deep\n")
        })
        .await;
        // It goes as it came.
        std::fs::write(shared.0.join("stop"), "").unwrap();
        let ended = host.exited(&id).await;
        assert_eq!(ended.exit_code, Some(0));
        assert!(!file.exists());
    });
}

/// The old root of a container is unmounted with all below it: not so on the node.
#[test]
fn mounts_of_the_node_below_a_volume_outlive_its_containers() {
    on_host(async |host| {
        let shared = Shared::new(&host);
        mount_memory(&shared.0.join("inner"));
        std::fs::write(shared.0.join("inner/file"), "").unwrap();
        let line = "ls /volume/inner";
        let config = with(host.shell(line), &shared.0, Propagation::Bidirectional);
        let (status, said) = host.run(config).await;
        assert_eq!((status.exit_code, said.as_str()), (Some(0), "stdout: file"));
        assert!(shared.0.join("inner/file").exists());
    });
}

#[test]
fn what_the_node_mounts_shows_only_where_it_is_asked_for() {
    on_host(async |host| {
        let shared = Shared::new(&host);
        let line = "while [ ! -e /volume/go ]; do sleep 0.1; done; ls /volume/inner; \
                    /bin/busybox mount -t tmpfs none /volume/inner; echo x > /volume/inner/own";
        let private = with(host.shell(line), &shared.0, Propagation::Private);
        let slave = with(host.shell(line), &shared.0, Propagation::HostToContainer);
        let logs = [&private, &slave].map(|config| config.log_path.clone());
        let ids = [host.start(private).await, host.start(slave).await];
        mount_memory(&shared.0.join("inner"));
        std::fs::write(shared.0.join("inner/late"), "").unwrap();
        std::fs::write(shared.0.join("go"), "").unwrap();
        for id in &ids {
            assert_eq!(host.exited(id).await.exit_code, Some(0));
        }
        let said = logs.map(|log| crate::support::texts(&log));
        assert_eq!(said, ["", "stdout: late"]);
        assert!(!shared.0.join("inner/own").exists());
    });
}

#[test]
fn a_mount_that_is_not_shared_cannot_come_back() {
    on_host(async |host| {
        let path = host.directory.path().join("volume");
        std::fs::create_dir(&path).unwrap();
        mount(Some(&path), &path, NONE, MsFlags::MS_BIND, NONE).unwrap();
        mount(NONE, &path, NONE, MsFlags::MS_PRIVATE, NONE).unwrap();
        let refusal = async |propagation| {
            let sandbox = host.sandbox().await;
            let config = with(host.shell("true"), &path, propagation);
            let id = host.runtime.create_container(&sandbox, config).await;
            let started = host.runtime.start_container(&id.unwrap()).await;
            started.unwrap_err().to_string()
        };
        let both = refusal(Propagation::Bidirectional).await;
        let one = refusal(Propagation::HostToContainer).await;
        umount2(&path, MntFlags::MNT_DETACH).unwrap();
        let said = format!("path {path:?} is mounted on {path:?} but it is not ");
        assert!(both.contains(&format!("{said}a shared mount")), "{both}");
        assert!(
            one.contains(&format!("{said}a shared or slave mount")),
            "{one}"
        );
    });
}
