//! Pods with users of their own: root inside is nobody of weight outside.

use crate::support::{Host, on_host, texts};
use coracle_agent::runtime::{
    ContainerConfig, ExecConfig, IdRange, Mount, Runtime, SandboxId, Seccomp, Security,
};
use std::fs;
use std::os::unix::fs::MetadataExt;
use tokio::io::AsyncReadExt;

const RANGE: IdRange = IdRange {
    first: 65_536 * 7,
    count: 65_536,
};

/// None on a kernel or a file system that cannot.
async fn sandbox(host: &Host) -> Option<SandboxId> {
    if !host.runtime.has_user_namespaces().await {
        eprintln!("skipped: this host's temporary directory has no id-mapped mounts");
        return None;
    }
    let made = host
        .sandbox_with(|config| config.id_range = Some(RANGE))
        .await;
    Some(made)
}

async fn run(host: &Host, sandbox: &SandboxId, config: ContainerConfig) -> Vec<String> {
    let id = host.start_in(sandbox, config.clone()).await;
    host.exited(&id).await;
    texts(&config.log_path).lines().map(str::to_owned).collect()
}

#[test]
fn root_inside_is_another_outside_and_owns_its_files() {
    on_host(async |host| {
        let Some(sandbox) = sandbox(&host).await else {
            return;
        };
        let volume = host.directory.path().join("volume");
        fs::create_dir(&volume).unwrap();
        fs::write(volume.join("file"), "shared\n").unwrap();
        let config = ContainerConfig {
            mounts: vec![Mount {
                container_path: "/data".into(),
                host_path: volume.clone(),
                ..Mount::default()
            }],
            working_dir: "/a/b".into(),
            ..host.shell(
                "id -u; busybox cut -c1-40 /proc/self/uid_map | busybox tr -s ' '
                 busybox stat -c %u:%g /bin/busybox /data/file /etc/passwd /a/b / /data
                 echo more > /data/new; echo own > /own; busybox stat -c %u /own
                 cat /etc/hostname; busybox hostname
                 echo x > /dev/shm/x && echo shm; echo again > /dev/stdout
                 busybox ip link | busybox grep -c '^[0-9]'; cat /own",
            )
        };
        let lines = run(&host, &sandbox, config).await;
        let expected = [
            "0",
            " 0 458752 65536",
            "0:0",
            "0:0",
            "0:0",
            "0:0",
            "0:0",
            "0:0",
            "0",
            "web",
            "web",
            "shm",
            "again",
            "1",
            "own",
        ];
        assert_eq!(lines, expected.map(|line| format!("stdout: {line}")));
        // What its root writes to a volume is the node's root's.
        assert_eq!(fs::metadata(volume.join("new")).unwrap().uid(), 0);
    });
}

#[test]
fn its_root_has_no_power_outside() {
    on_host(async |host| {
        let Some(sandbox) = sandbox(&host).await else {
            return;
        };
        let line = "echo 1 > /proc/sys/kernel/panic; busybox unshare -n true; sleep 1000";
        let config = ContainerConfig {
            security: Security {
                seccomp: Seccomp::RuntimeDefault,
                unmasked_proc: true,
                ..Security::default()
            },
            ..host.shell(line)
        };
        let log = config.log_path.clone();
        let id = host.start_in(&sandbox, config).await;
        let pid = host.pid(&id).await;
        let owner = fs::metadata(format!("/proc/{pid}/cmdline")).unwrap().uid();
        assert_eq!(owner, RANGE.first);
        let command = ["id", "-u"].map(str::to_owned).to_vec();
        let exec = ExecConfig {
            command,
            stdout: true,
            ..ExecConfig::default()
        };
        let mut streams = host.runtime.exec(&id, exec).await.unwrap();
        let mut said = String::new();
        streams
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .await
            .unwrap();
        assert_eq!(streams.exit.await.unwrap(), 0);
        assert_eq!(said, "0\n");
        host.runtime.stop_container(&id, 0).await.unwrap();
        let said = texts(&log);
        assert!(
            said.contains("can't create /proc/sys/kernel/panic"),
            "{said}"
        );
        assert!(said.contains("unshare: unshare(0x40000000)"), "{said}");
    });
}

#[test]
fn a_user_of_the_image_is_mapped_too() {
    on_host(async |host| {
        let Some(sandbox) = sandbox(&host).await else {
            return;
        };
        let config = ContainerConfig {
            security: Security {
                run_as_user: Some(1000),
                ..Security::default()
            },
            tty: true,
            ..host.shell("id -u; id -G; busybox touch /bin/x 2>/dev/null || echo no; tty")
        };
        let lines = run(&host, &sandbox, config).await;
        let expected = ["1000", "1001 50", "no", "/dev/pts/0"];
        let shown: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
        assert_eq!(shown, expected.map(|line| format!("stdout: {line}")));
    });
}

#[test]
fn a_user_out_of_the_range_is_refused() {
    on_host(async |host| {
        let Some(sandbox) = sandbox(&host).await else {
            return;
        };
        let security = Security {
            run_as_user: Some(i64::from(RANGE.count)),
            ..Security::default()
        };
        let config = ContainerConfig {
            security,
            ..host.shell("true")
        };
        let created = host.runtime.create_container(&sandbox, config).await;
        let started = host.runtime.start_container(&created.unwrap()).await;
        let text = started.unwrap_err().to_string();
        assert!(
            text.contains("unmapped user in user namespace: 65536"),
            "{text}"
        );
    });
}
