//! What runs, with which environment, as whom, and how it ends.

use crate::support::{on_host, until};
use coracle_agent::runtime::{
    ContainerConfig, ContainerState, EventKind, Mount, Runtime, RuntimeError, Security,
};
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn output_goes_to_the_log_and_the_exit_code_is_kept() {
    on_host(async |host| {
        let (status, log) = host.run(host.shell("echo one; echo two >&2; exit 3")).await;
        assert_eq!(
            (status.exit_code, status.reason.as_str()),
            (Some(3), "Error")
        );
        assert!(status.started_at.unwrap() <= status.finished_at.unwrap());
        let mut lines: Vec<&str> = log.lines().collect();
        lines.sort_unstable(); // Two pipes have no order between them.
        assert_eq!(lines, ["stderr: two", "stdout: one"]);
        let (status, _) = host.run(host.shell("true")).await;
        assert_eq!(
            (status.exit_code, status.reason.as_str()),
            (Some(0), "Completed")
        );
    });
}

#[test]
fn the_image_says_what_the_pod_does_not() {
    on_host(async |host| {
        // A working directory that the image lacks is made.
        let elsewhere = ContainerConfig {
            working_dir: "/a/b".into(),
            ..host.shell("pwd")
        };
        assert_eq!(host.run(elsewhere).await.1, "stdout: /a/b");
        let image = ContainerConfig {
            command: vec![],
            ..host.shell("")
        };
        assert_eq!(host.run(image).await.1, "stdout: from the image");
        let config = ContainerConfig {
            env: vec![("A".into(), "x y".into()), ("FROM".into(), "pod".into())],
            working_dir: "/etc".into(),
            ..host.shell(
                "echo $A $FROM $HOSTNAME $HOME; pwd; hostname 2>/dev/null || cat /etc/hostname",
            )
        };
        assert_eq!(
            host.run(config).await.1,
            "stdout: x y pod web /root\nstdout: /etc\nstdout: web"
        );
    });
}

#[test]
fn it_runs_as_the_user_with_its_groups_and_few_capabilities() {
    on_host(async |host| {
        let as_user = |uid| ContainerConfig {
            security: Security {
                run_as_user: Some(uid),
                ..Security::default()
            },
            ..host.shell(
                "id -u; id -g; id -G; cat /proc/self/status | busybox grep -E 'CapEff|NoNewPrivs'",
            )
        };
        assert_eq!(
            host.run(as_user(1000)).await.1,
            "stdout: 1000\nstdout: 1001\nstdout: 1001 50\nstdout: CapEff:\t0000000000000000\n\
             stdout: NoNewPrivs:\t1"
        );
        let (_, log) = host
            .run(host.shell("busybox grep CapEff /proc/self/status"))
            .await;
        assert_eq!(log, "stdout: CapEff:\t00000000a80425fb");
    });
}

#[test]
fn outputs_can_be_opened_again_by_whoever_it_runs_as() {
    on_host(async |host| {
        let config = ContainerConfig {
            security: Security {
                run_as_user: Some(1000),
                ..Security::default()
            },
            ..host.shell("echo again > /dev/stdout")
        };
        assert_eq!(host.run(config).await.1, "stdout: again");
    });
}

#[test]
fn the_container_sees_its_own_world_only() {
    on_host(async |host| {
        let volume = host.directory.path().join("volume");
        fs::create_dir(&volume).unwrap();
        fs::write(volume.join("file"), "shared\n").unwrap();
        let mount = |path: &str, read_only| Mount {
            container_path: path.into(),
            host_path: volume.clone(),
            read_only,
            ..Mount::default()
        };
        let config = ContainerConfig {
            mounts: vec![mount("/data", false), mount("/fixed", true)],
            ..host.shell(
                "echo $$; cat /data/file; echo more > /data/new; echo no > /fixed/x; echo $?
                 busybox ls /dev | busybox tr '\\n' ' '; echo
                 echo x > /proc/sys/kernel/domainname || echo masked
                 busybox ls -ld /tmp /root 2>&1 | busybox wc -l; echo own > /tmpfile; cat /tmpfile
                 busybox mount | busybox grep -c ' / type overlay'
                 busybox ip link | busybox grep -c '^[0-9]'",
            )
        };
        let (status, log) = host.run(config).await;
        let stdout: Vec<&str> = log
            .lines()
            .filter_map(|line| line.strip_prefix("stdout: "))
            .collect();
        assert_eq!(status.exit_code, Some(0), "{log}");
        assert_eq!(stdout[..3], ["1", "shared", "1"], "{log}");
        for device in [
            "null", "zero", "urandom", "tty", "ptmx", "shm", "mqueue", "fd", "stdout",
        ] {
            assert!(
                stdout[3].split(' ').any(|name| name == device),
                "{device} in {log}"
            );
        }
        assert_eq!(stdout[4..], ["masked", "2", "own", "1", "1"], "{log}");
        assert_eq!(fs::read_to_string(volume.join("new")).unwrap(), "more\n");
        assert!(!volume.join("x").exists());
    });
}

#[test]
fn a_part_of_a_volume_is_shown_and_nothing_outside_of_it() {
    on_host(async |host| {
        let directory = host.directory.path();
        let (volume, outside) = (directory.join("volume"), directory.join("outside"));
        fs::create_dir_all(volume.join("real/part")).unwrap();
        fs::create_dir_all(outside.join("part")).unwrap();
        fs::write(volume.join("real/file"), "of the volume\n").unwrap();
        symlink("real", volume.join("link")).unwrap();
        let mount = |at: &str, part: &str| Mount {
            container_path: at.into(),
            host_path: volume.clone(),
            sub_path: part.into(),
            ..Mount::default()
        };
        let config = |line: &str| ContainerConfig {
            mounts: vec![mount("/part", "link/part"), mount("/file", "link/file")],
            ..host.shell(line)
        };
        let (status, log) = host.run(config("cat /file; echo new > /part/new")).await;
        assert_eq!(
            (status.exit_code, log.as_str()),
            (Some(0), "stdout: of the volume")
        );
        assert_eq!(
            fs::read_to_string(volume.join("real/part/new")).unwrap(),
            "new\n"
        );
        // Changed after the container was made and before it starts.
        let sandbox = host.sandbox().await;
        let make = host
            .runtime
            .create_container(&sandbox, config("true"))
            .await;
        fs::remove_file(volume.join("link")).unwrap();
        symlink(&outside, volume.join("link")).unwrap();
        let error = host.runtime.start_container(&make.unwrap()).await;
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("cannot mount the subPath link/part"),
            "{error}"
        );
        assert!(error.contains("it leads out of its directory"), "{error}");
    });
}

#[test]
fn what_cannot_start_says_why() {
    on_host(async |host| {
        let sandbox = host.sandbox().await;
        let start = async |config: ContainerConfig| {
            let id = host.runtime.create_container(&sandbox, config).await?;
            let error = host.runtime.start_container(&id).await.unwrap_err();
            let status = host.runtime.container_status(&id).await.unwrap();
            assert_eq!(status.state, ContainerState::Exited);
            assert_eq!(
                (status.exit_code, status.reason.as_str()),
                (Some(128), "StartError")
            );
            assert!(status.message.contains(&error.to_string()));
            Ok::<String, RuntimeError>(error.to_string())
        };
        let command = |program: &str| ContainerConfig {
            command: vec![program.into()],
            ..host.shell("")
        };
        let text = start(command("nothing")).await.unwrap();
        assert!(
            text.contains("exec: \"nothing\": executable file not found in $PATH"),
            "{text}"
        );
        let text = start(command("/bin/nothing")).await.unwrap();
        assert!(
            text.contains("stat /bin/nothing: no such file or directory"),
            "{text}"
        );
        let text = start(command("/etc/passwd")).await.unwrap();
        assert!(text.contains("permission denied"), "{text}");
        let text = start(ContainerConfig {
            log_path: "/nowhere/log".into(),
            ..host.shell("")
        })
        .await
        .unwrap();
        assert!(text.contains("cannot open /nowhere/log"), "{text}");
        let unknown = ContainerConfig {
            image: "none".into(),
            ..host.shell("")
        };
        assert!(matches!(
            start(unknown).await,
            Err(RuntimeError::ImageNotPresent(_))
        ));
    });
}

#[test]
fn stopping_asks_first_and_kills_after_the_grace() {
    on_host(async |host| {
        let mut events = host.runtime.events();
        let polite =
            host.shell("trap 'echo bye; exit 7' TERM; echo ready; while true; do sleep 0.05; done");
        let log = polite.log_path.clone();
        let id = host.start(polite).await;
        until("the trap", async || {
            fs::read_to_string(&log)
                .is_ok_and(|text| text.contains("ready"))
                .then_some(())
        })
        .await;
        host.runtime.stop_container(&id, 30).await.unwrap();
        let status = host.runtime.container_status(&id).await.unwrap();
        assert_eq!(status.exit_code, Some(7));
        assert!(crate::support::texts(&log).ends_with("stdout: bye"));
        assert_eq!(events.recv().await.unwrap().kind, EventKind::Started);
        let end = EventKind::Exited {
            exit_code: 7,
            reason: "Error".into(),
        };
        assert_eq!(events.recv().await.unwrap().kind, end);

        let stubborn = host
            .start(host.shell("trap '' TERM; while true; do sleep 0.05; done"))
            .await;
        host.runtime.stop_container(&stubborn, 1).await.unwrap();
        let status = host.runtime.container_status(&stubborn).await.unwrap();
        assert_eq!(status.exit_code, Some(137));
        // Again, and of what is gone: no error.
        host.runtime.stop_container(&stubborn, 1).await.unwrap();
        host.runtime.remove_container(&stubborn).await.unwrap();
        host.runtime.remove_container(&stubborn).await.unwrap();
        assert!(host.runtime.container_status(&stubborn).await.is_err());
    });
}

#[test]
fn removing_a_sandbox_leaves_nothing() {
    on_host(async |host| {
        let id = host.start(host.shell("sleep 1000")).await;
        let sandbox = host.runtime.container_status(&id).await.unwrap().sandbox;
        let listed = host.runtime.list_sandboxes().await.unwrap();
        let network = listed[0].network_namespace.clone().unwrap();
        assert!(network.exists());
        host.runtime.remove_sandbox(&sandbox).await.unwrap();
        assert!(host.runtime.list_sandboxes().await.unwrap().is_empty());
        assert!(host.runtime.list_containers().await.unwrap().is_empty());
        let agent = host.directory.path().join("agent");
        for part in ["containers", "sandboxes", "images/holders", "images/work"] {
            assert_eq!(fs::read_dir(agent.join(part)).unwrap().count(), 0, "{part}");
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(&*agent.to_string_lossy()), "{mounts}");
    });
}

#[test]
fn a_read_only_root_and_a_terminal_of_its_own() {
    on_host(async |host| {
        let config = ContainerConfig {
            tty: true,
            security: Security {
                read_only_root_filesystem: true,
                ..Security::default()
            },
            ..host.shell(
                "echo x > /file || echo refused; tty; busybox ls -l /dev/console | busybox wc -l",
            )
        };
        let (status, log) = host.run(config).await;
        assert_eq!(status.exit_code, Some(0), "{log}");
        let lines: Vec<&str> = log
            .lines()
            .map(|line| line.trim_end_matches('\r'))
            .collect();
        assert!(lines[0].contains("Read-only file system"), "{log}");
        assert_eq!(
            lines[1..],
            ["stdout: refused", "stdout: /dev/pts/0", "stdout: 1"],
            "{log}"
        );
    });
}

#[test]
fn containers_of_a_pod_share_what_pods_share() {
    on_host(async |host| {
        let sandbox = host.sandbox().await;
        let run = async |line: &str| {
            let config = host.shell(line);
            let id = host
                .runtime
                .create_container(&sandbox, config.clone())
                .await
                .unwrap();
            host.runtime.start_container(&id).await.unwrap();
            host.exited(&id).await;
            crate::support::texts(&config.log_path)
        };
        let line =
            "echo shared > /dev/shm/x; for n in net uts ipc; do readlink /proc/self/ns/$n; done";
        let line = line.replace("readlink", "busybox readlink");
        let first = run(&line).await;
        let second = run(&format!("cat /dev/shm/x; {line}")).await;
        assert_eq!(second, format!("stdout: shared\n{first}"));
        let own = fs::read_link("/proc/self/ns/net").unwrap();
        assert!(!first.contains(&*own.to_string_lossy()));
    });
}

#[test]
fn a_pod_on_the_hosts_network_has_the_hosts_names() {
    on_host(async |host| {
        let config = coracle_agent::runtime::SandboxConfig {
            host_network: true,
            host_pid: true,
            cgroup: "podhost".into(),
            ..Default::default()
        };
        let sandbox = host.runtime.run_sandbox(config).await.unwrap();
        let config = ContainerConfig {
            security: Security {
                privileged: true,
                ..Security::default()
            },
            ..host.shell(
                "for n in net uts pid; do busybox readlink /proc/self/ns/$n; done
                 busybox sleep 1000 & echo end; exit 0",
            )
        };
        let log = config.log_path.clone();
        let id = host
            .runtime
            .create_container(&sandbox, config)
            .await
            .unwrap();
        host.runtime.start_container(&id).await.unwrap();
        // The sleeping child would live on in the host's process namespace: it is killed.
        assert_eq!(host.exited(&id).await.exit_code, Some(0));
        let own = ["net", "uts", "pid"].map(|kind| {
            let link = fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
            format!("stdout: {}", link.display())
        });
        assert_eq!(
            crate::support::texts(&log),
            format!("{}\nstdout: end", own.join("\n"))
        );
    });
}

#[test]
fn an_image_may_have_many_layers() {
    on_host(async |host| {
        let archive = host.directory.path().join("deep.tar");
        fs::write(&archive, crate::support::deep_archive(120)).unwrap();
        host.runtime.images().import(&archive).unwrap();
        let config = ContainerConfig {
            image: "test/deep:1".into(),
            ..host.shell("cat /layer1 /layer119; busybox ls / | busybox grep -c layer")
        };
        assert_eq!(
            host.run(config).await.1,
            "stdout: layer1\nstdout: layer119\nstdout: 119"
        );
    });
}

#[test]
fn many_pods_start_and_stop_at_once() {
    const PODS: usize = 12;
    on_host(async |host| {
        let start = async || host.start(host.shell("sleep 1000")).await;
        let ids = futures::future::join_all((0..PODS).map(|_| start())).await;
        let running = host.runtime.list_containers().await.unwrap();
        assert!(
            running
                .iter()
                .all(|one| one.state == ContainerState::Running)
        );
        assert_eq!(running.len(), PODS);
        let stop = async |id| host.runtime.stop_container(id, 0).await.unwrap();
        futures::future::join_all(ids.iter().map(stop)).await;
        let ended = host.runtime.list_containers().await.unwrap();
        assert!(
            ended.iter().all(|one| one.state == ContainerState::Exited),
            "{ended:?}"
        );
    });
}
