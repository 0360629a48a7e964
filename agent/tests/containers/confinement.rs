//! What a container may not do: system calls, capabilities, files of the kernel, groups.

use crate::support::{Host, on_host, texts};
use coracle_agent::runtime::{
    ContainerConfig, ExecConfig, Mount, Runtime, RuntimeError, Seccomp, Security,
};
use std::fs;
use std::path::Path;
use tokio::io::AsyncReadExt;

/// Each answers with `yes` or the error, so that what is refused is told from what is missing.
const ATTEMPTS: &str = "mkdir /t && echo mkdir yes
    busybox unshare -U true 2>&1 && echo unshare yes
    busybox mount -t tmpfs none /t 2>&1 && echo mount yes
    busybox chroot / /bin/true 2>&1 && echo chroot yes
    busybox grep Seccomp: /proc/self/status";

fn confined(host: &Host, line: &str, security: Security) -> ContainerConfig {
    ContainerConfig {
        security,
        ..host.shell(line)
    }
}

fn with(seccomp: Seccomp) -> Security {
    Security {
        seccomp,
        allow_privilege_escalation: true,
        ..Security::default()
    }
}

fn answers(log: &str) -> Vec<String> {
    let lines = log.lines().filter_map(|line| line.strip_prefix("stdout: "));
    lines.map(str::to_owned).collect()
}

#[test]
fn the_default_profile_refuses_what_a_container_must_not_do() {
    on_host(async |host| {
        for allow_privilege_escalation in [true, false] {
            let security = Security {
                allow_privilege_escalation,
                ..with(Seccomp::RuntimeDefault)
            };
            let (_, log) = host.run(confined(&host, ATTEMPTS, security)).await;
            assert_eq!(
                answers(&log),
                [
                    "mkdir yes",
                    "unshare: unshare(0x10000000): Operation not permitted",
                    "mount: permission denied (are you root?)",
                    "chroot yes", // Its capability is one of the default ones.
                    "Seccomp:\t2",
                ],
            );
        }
    });
}

#[test]
fn the_unconfined_and_the_privileged_have_no_filter() {
    on_host(async |host| {
        let (_, log) = host
            .run(confined(&host, ATTEMPTS, with(Seccomp::Unconfined)))
            .await;
        let all = answers(&log);
        assert!(all.contains(&"unshare yes".to_owned()), "{log}");
        assert!(all.contains(&"Seccomp:\t0".to_owned()), "{log}");
        let privileged = Security {
            privileged: true,
            ..with(Seccomp::RuntimeDefault)
        };
        let (_, log) = host.run(confined(&host, ATTEMPTS, privileged)).await;
        let expected = [
            "mkdir yes",
            "unshare yes",
            "mount yes",
            "chroot yes",
            "Seccomp:\t0",
        ];
        assert_eq!(answers(&log), expected);
    });
}

#[test]
fn a_capability_brings_its_system_calls() {
    on_host(async |host| {
        let admin = Security {
            add_capabilities: vec!["SYS_ADMIN".into()],
            drop_capabilities: vec!["SYS_CHROOT".into()],
            ..with(Seccomp::RuntimeDefault)
        };
        let (_, log) = host.run(confined(&host, ATTEMPTS, admin)).await;
        let expected = [
            "mkdir yes",
            "unshare yes",
            "mount yes",
            "chroot: can't change root directory to '/': Operation not permitted",
            "Seccomp:\t2",
        ];
        assert_eq!(answers(&log), expected);
    });
}

fn write_profile(path: &Path, refused: &str) {
    let profile = serde_json::json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{ "names": [refused], "action": "SCMP_ACT_ERRNO", "errnoRet": 28 }],
    });
    fs::write(path, profile.to_string()).unwrap();
}

#[test]
fn a_profile_of_the_node_is_used_also_by_what_is_executed_later() {
    on_host(async |host| {
        let path = host.directory.path().join("profile.json");
        write_profile(&path, "mkdir");
        let line = "mkdir /tmp/x; while true; do sleep 1; done";
        let config = confined(&host, line, with(Seccomp::Localhost(path.clone())));
        let id = host.start(config.clone()).await;
        // The copy that was made with the container counts.
        write_profile(&path, "getpid");
        let command = ["mkdir", "/tmp/y"].map(str::to_owned).to_vec();
        let exec = ExecConfig {
            command,
            stderr: true,
            ..ExecConfig::default()
        };
        let mut streams = host.runtime.exec(&id, exec).await.unwrap();
        let mut said = String::new();
        let mut stderr = streams.stderr.take().unwrap();
        stderr.read_to_string(&mut said).await.unwrap();
        assert_eq!(streams.exit.await.unwrap(), 1);
        let expected = "mkdir: can't create directory '/tmp/y': No space left on device\n";
        assert_eq!(said, expected);
        host.runtime.stop_container(&id, 0).await.unwrap();
        let log = texts(&config.log_path);
        assert_eq!(
            log,
            expected
                .trim_end()
                .replace("/y", "/x")
                .replace("mkdir:", "stderr: mkdir:")
        );
    });
}

#[test]
fn a_profile_that_cannot_be_used_is_told_before_the_start() {
    on_host(async |host| {
        let sandbox = host.sandbox().await;
        let path = host.directory.path().join("profile.json");
        let shown = path.display().to_string();
        let refused = async || {
            let config = confined(&host, "true", with(Seccomp::Localhost(path.clone())));
            let made = host.runtime.create_container(&sandbox, config).await;
            match made.unwrap_err() {
                RuntimeError::Invalid(text) => text,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(
            refused().await,
            format!(
                "cannot load seccomp profile {shown:?}: open {shown}: no such file or directory"
            )
        );
        fs::write(&path, "{ not json").unwrap();
        assert!(
            refused()
                .await
                .starts_with("decoding seccomp profile failed")
        );
        fs::write(&path, r#"{"defaultAction":"SCMP_ACT_SHRUG"}"#).unwrap();
        let text = refused().await;
        assert!(text.contains("SCMP_ACT_SHRUG"), "{text}");
    });
}

#[test]
fn strict_groups_are_those_of_the_pod_and_the_status_tells_them() {
    on_host(async |host| {
        for (strict_groups, expected) in [(false, vec![50, 60, 1001]), (true, vec![60, 1001])] {
            let security = Security {
                run_as_user: Some(1000),
                supplemental_groups: vec![60],
                strict_groups,
                ..Security::default()
            };
            let (status, log) = host.run(confined(&host, "id -G", security)).await;
            let mut shown: Vec<u32> = answers(&log)[0]
                .split(' ')
                .map(|group| group.parse().unwrap())
                .collect();
            shown.sort_unstable();
            assert_eq!(shown, expected);
            let user = status.user.unwrap();
            assert_eq!((user.uid, user.gid, user.groups), (1000, 1001, expected));
        }
    });
}

#[test]
fn read_only_all_the_way_down_leaves_no_mount_to_write_to() {
    on_host(async |host| {
        let volume = host.directory.path().join("volume");
        let below = volume.join("below");
        fs::create_dir_all(&below).unwrap();
        let none: Option<&str> = None;
        nix::mount::mount(
            none,
            &below,
            Some("tmpfs"),
            nix::mount::MsFlags::empty(),
            none,
        )
        .unwrap();
        let mount = |recursive_read_only| Mount {
            container_path: "/data".into(),
            host_path: volume.clone(),
            read_only: true,
            recursive_read_only,
            ..Mount::default()
        };
        let line = "busybox touch /data/a 2>/dev/null || echo no; \
                    busybox touch /data/below/a 2>/dev/null || echo no";
        let mut counts = Vec::new();
        for recursive in [false, true] {
            let config = ContainerConfig {
                mounts: vec![mount(recursive)],
                ..host.shell(line)
            };
            counts.push(answers(&host.run(config).await.1).len());
        }
        nix::mount::umount(&below).unwrap();
        assert_eq!(counts, [1, 2]);
    });
}

#[test]
fn unmasked_shows_all_of_proc_and_masked_hides_the_kernels_secrets() {
    on_host(async |host| {
        let line = "busybox wc -c < /proc/interrupts; busybox ls /sys/firmware | busybox wc -l; \
                    echo x 2>/dev/null > /proc/sys/kernel/domainname || echo read-only";
        let (_, log) = host.run(host.shell(line)).await;
        assert_eq!(answers(&log), ["0", "0", "read-only"]);
        let unmasked = Security {
            unmasked_proc: true,
            ..Security::default()
        };
        let (_, log) = host.run(confined(&host, line, unmasked)).await;
        assert_ne!(answers(&log)[0], "0", "{log}");
    });
}
