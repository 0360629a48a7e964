//! Control groups: limits, what happens past them, and usage.

use crate::support::{on_host, until};
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
