//! Volumes that show what is in an image.

use crate::support::{Host, IMAGE, deep_archive, on_host, texts};
use coracle_agent::runtime::{ContainerConfig, Mount, Runtime, RuntimeError};

const DEEP: &str = "test/deep:1";

async fn volume(host: &Host, image: &str, sub_path: &str) -> Mount {
    let found = host.runtime.image_status(image).await.unwrap().unwrap();
    Mount {
        container_path: "/data".into(),
        image: found.id,
        sub_path: sub_path.into(),
        ..Mount::default()
    }
}

async fn said(host: &Host, mount: Mount, line: &str) -> String {
    let config = ContainerConfig {
        mounts: vec![mount],
        ..host.shell(line)
    };
    let log = config.log_path.clone();
    let id = host.start(config).await;
    host.exited(&id).await;
    texts(&log)
}

fn import_deep(host: &Host, layers: usize) {
    let archive = host.directory.path().join("deep.tar");
    std::fs::write(&archive, deep_archive(layers)).unwrap();
    host.runtime.images().import(&archive).unwrap();
}

#[test]
fn an_image_is_read_and_neither_written_nor_executed() {
    on_host(async |host| {
        import_deep(&host, 3);
        let mount = volume(&host, DEEP, "").await;
        let read = said(&host, mount.clone(), "cat /data/layer1 /data/layer2").await;
        assert_eq!(read, "stdout: layer1\nstdout: layer2");
        let line = "(echo x > /data/layer1) 2>/dev/null && echo written; \
             /data/bin/busybox true 2>/dev/null && echo executed; echo done";
        assert_eq!(said(&host, mount, line).await, "stdout: done");
        // One layer alone, too.
        let mount = volume(&host, IMAGE, "etc").await;
        let read = said(&host, mount, "cat /data/group").await;
        assert_eq!(read, "stdout: root:x:0:\nstdout: extra:x:50:app");
    });
}

#[test]
fn a_part_of_an_image_is_there_or_the_container_is_not_made() {
    on_host(async |host| {
        import_deep(&host, 2);
        // A link's target is looked for in the image.
        let mount = volume(&host, DEEP, "bin/../bin/cat").await;
        let sandbox = host.sandbox().await;
        let config = ContainerConfig {
            mounts: vec![mount, volume(&host, DEEP, "nothing").await],
            ..host.shell("true")
        };
        let refused = host.runtime.create_container(&sandbox, config).await;
        let Err(RuntimeError::Failed(text)) = refused else {
            panic!("{refused:?}");
        };
        assert!(
            text.starts_with("ImageVolumeMountFailed: \"nothing\""),
            "{text}"
        );
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let here = host.directory.path().to_string_lossy().into_owned();
        assert!(
            !mounts.contains(&format!("{here}/agent/containers")),
            "{mounts}"
        );
        assert!(host.runtime.images().holders().unwrap().is_empty());
    });
}

#[test]
fn an_image_in_use_keeps_its_layers() {
    on_host(async |host| {
        import_deep(&host, 12);
        let config = ContainerConfig {
            mounts: vec![volume(&host, DEEP, "").await],
            ..host.shell("cat /data/layer11")
        };
        let log = config.log_path.clone();
        let sandbox = host.sandbox().await;
        let id = host
            .runtime
            .create_container(&sandbox, config)
            .await
            .unwrap();
        host.runtime.remove_image(DEEP).await.unwrap();
        host.runtime.start_container(&id).await.unwrap();
        host.exited(&id).await;
        assert_eq!(texts(&log), "stdout: layer11");
    });
}
