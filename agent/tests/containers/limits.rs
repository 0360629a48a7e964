//! Control groups: limits, what happens past them, and usage.

use crate::support::{on_host, reopen, until};
use coracle_agent::runtime::{ContainerConfig, Resources, Runtime};

#[test]
fn past_its_memory_a_container_is_killed_with_the_reason() {
    on_host(async |host| {
        let config = ContainerConfig {
            resources: Resources {
                memory_limit_bytes: 16 << 20,
                oom_score_adj: Some(-900), // Refused without privilege, which is no error.
                cpu_shares: 1,
                cpu_quota_us: 50_000,
                pids_limit: 50,
                ..Resources::default()
            },
            ..host.shell("exec tail /dev/zero")
        };
        let (status, _) = host.run(config).await;
        assert_eq!(
            (status.exit_code, status.reason.as_str()),
            (Some(137), "OOMKilled")
        );
    });
}

#[test]
fn limits_hold_and_usage_is_told() {
    on_host(async |host| {
        let config = ContainerConfig {
            resources: Resources {
                pids_limit: 3,
                ..Resources::default()
            },
            ..host.shell("sleep 1000 & sleep 1000 & sleep 1000 & sleep 1000 & wait")
        };
        let (status, log) = host.run(config).await;
        assert_ne!(status.exit_code, Some(0), "{log}");
        let id = host.start(host.shell("while true; do :; done")).await;
        until("some usage", async || {
            let usage = host.runtime.container_usage(&id).await.unwrap()?;
            (usage.cpu_ns > 1_000_000 && usage.memory_working_set_bytes > 0).then_some(())
        })
        .await;
    });
}

/// How many processes the kernel counts for a container.
fn process_count(pid: i32) -> Option<usize> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let count = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next()?, parts.next()?);
        let mount = match controllers {
            "" => "/sys/fs/cgroup",
            "pids" => "/sys/fs/cgroup/pids",
            _ => return None,
        };
        std::fs::read_to_string(format!("{mount}{group}/pids.current")).ok()
    });
    count?.trim().parse().ok()
}

#[test]
fn a_container_that_forks_without_end_is_held_and_ended() {
    on_host(async |host| {
        let bomb = ContainerConfig {
            resources: Resources {
                pids_limit: 40,
                ..Resources::default()
            },
            // A shell ends when it cannot fork: one that only breeds shells may die out between two
            // looks. What these leave stays, and the first begins anew for ever.
            ..host.shell("while :; do (while :; do sleep 1000 & done); sleep 1; done")
        };
        let id = host.start(bomb).await;
        let pid = host.pid(&id).await;
        until("the bomb fills its room", async || {
            process_count(pid).filter(|count| *count >= 39)
        })
        .await;
        // Others are none the worse.
        let (status, log) = host.run(host.shell("echo alive")).await;
        assert_eq!((status.exit_code, log.as_str()), (Some(0), "stdout: alive"));
        host.runtime.stop_container(&id, 0).await.unwrap();
        assert_eq!(host.exited(&id).await.exit_code, Some(137));
        assert_eq!(process_count(pid), None);
    });
}

#[test]
fn a_container_that_floods_its_log_is_stopped_as_any_other() {
    on_host(async |host| {
        let config = host.shell("trap 'exit 7' TERM; busybox yes 0123456789 & wait");
        let log = config.log_path.clone();
        let id = host.start(config).await;
        until("a flood", async || {
            let written = std::fs::metadata(&log).map_or(0, |log| log.len());
            (written > 4 << 20).then_some(())
        })
        .await;
        host.runtime.stop_container(&id, 20).await.unwrap();
        assert_eq!(host.exited(&id).await.exit_code, Some(7));
        // Each line whole, but for the one in which it was killed.
        let text = std::fs::read_to_string(&log).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let (_, whole) = lines.split_last().unwrap();
        let odd = whole
            .iter()
            .find(|line| !line.ends_with(" stdout F 0123456789"));
        assert_eq!(odd, None);
    });
}

#[test]
fn groups_have_the_weight_they_are_given() {
    on_host(async |host| {
        let sandbox = host
            .sandbox_with(|config| config.cgroup = format!("burstable/{}", config.cgroup))
            .await;
        let mut told = Vec::new();
        for cpu_shares in [1536, 2] {
            let resources = Resources {
                cpu_shares,
                ..Resources::default()
            };
            host.runtime
                .set_group("burstable", resources)
                .await
                .unwrap();
            let group = format!("{}/burstable", host.runtime.cgroup_root());
            let files = [
                format!("/sys/fs/cgroup/cpu{group}/cpu.shares"),
                format!("/sys/fs/cgroup{group}/cpu.weight"),
            ];
            let found = files
                .iter()
                .find_map(|file| std::fs::read_to_string(file).ok());
            told.extend(found.and_then(|text| text.trim().parse::<u64>().ok()));
        }
        match told[..] {
            [] => eprintln!("skipped: this host does not share out processors"),
            [more, least] => assert!(more > least && least <= 2, "{told:?}"),
            _ => panic!("{told:?}"),
        }
        let id = host.start_in(&sandbox, host.shell("echo here")).await;
        assert_eq!(host.exited(&id).await.exit_code, Some(0));
    });
}

#[test]
fn limits_are_changed_while_it_runs_and_known_to_the_next_agent() {
    on_host(async |host| {
        let first = Resources {
            memory_limit_bytes: 64 << 20,
            cpu_shares: 102,
            cpu_quota_us: 20_000,
            cpu_period_us: 100_000,
            ..Resources::default()
        };
        let config = ContainerConfig {
            resources: first.clone(),
            ..host.shell("exec sleep 1000")
        };
        let id = host.start(config).await;
        assert_eq!(
            host.runtime.container_limits(&id).await.unwrap().resources,
            first
        );
        for bytes in [100_000_000, 32 << 20] {
            let change = Resources {
                memory_limit_bytes: bytes,
                cpu_shares: 307,
                ..Resources::default()
            };
            host.runtime
                .update_container(&id, change.clone())
                .await
                .unwrap();
            let limits = host.runtime.container_limits(&id).await.unwrap();
            assert_eq!(limits.resources, change.over(&first));
            assert!(limits.memory_usage_bytes > 0);
        }
        let before = host.runtime.container_limits(&id).await.unwrap().resources;
        let directory = host.directory.clone();
        drop(host);
        let runtime = reopen(directory.path()).await;
        assert_eq!(
            runtime.container_limits(&id).await.unwrap().resources,
            before
        );
    });
}
