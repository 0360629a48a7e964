//! The text that scrapers of resources read.

use super::super::machine::Machine;
use super::*;
use crate::runtime::{
    ContainerConfig, ContainerId, ContainerState, ContainerStatus, SandboxConfig, SandboxId,
    SandboxState, SandboxStatus,
};
use expect_test::expect;
use jiff::Timestamp;

pub fn seen() -> Seen {
    let at: Timestamp = "2026-01-02T03:04:05.678Z".parse().unwrap();
    let usage = |cpu_ns: u64| Usage {
        cpu_ns,
        memory_usage_bytes: 3_000_000,
        memory_working_set_bytes: 2_000_000,
        ..Usage::default()
    };
    let created: Timestamp = "2026-01-02T03:00:00.5Z".parse().unwrap();
    let status = ContainerStatus {
        id: ContainerId("c1".into()),
        sandbox: SandboxId("s1".into()),
        config: ContainerConfig {
            name: "main".into(),
            image: "sha256:b".into(),
            ..ContainerConfig::default()
        },
        state: ContainerState::Running,
        created_at: created,
        started_at: None,
        finished_at: None,
        exit_code: None,
        reason: String::new(),
        message: String::new(),
        image_id: String::new(),
        pid: None,
        user: None,
    };
    let config = SandboxConfig {
        pod_name: "web".into(),
        pod_namespace: "default".into(),
        cgroup: "podu1".into(),
        ..SandboxConfig::default()
    };
    let pod = SeenPod {
        sandbox: SandboxStatus {
            id: SandboxId("s1".into()),
            config,
            state: SandboxState::Ready,
            created_at: created,
            network_namespace: None,
            addresses: Default::default(),
        },
        at,
        usage: Some(usage(2_500_000_000)),
        interfaces: Vec::new(),
        containers: vec![SeenContainer {
            status,
            usage: usage(1_500_000_000),
        }],
    };
    Seen {
        machine: Machine {
            at,
            booted_at: created,
            usage: usage(9_000_000_000),
            memory_bytes: 1 << 30,
            swap_total_bytes: 0,
            interfaces: Vec::new(),
        },
        pods: vec![pod],
    }
}

#[test]
fn numbers_have_upstreams_names() {
    expect![[r#"
        # HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container in core-seconds
        # TYPE container_cpu_usage_seconds_total counter
        container_cpu_usage_seconds_total{container="main",namespace="default",pod="web"} 1.5 1767323045678
        # HELP container_memory_working_set_bytes [STABLE] Current working set of the container in bytes
        # TYPE container_memory_working_set_bytes gauge
        container_memory_working_set_bytes{container="main",namespace="default",pod="web"} 2e+06 1767323045678
        # HELP container_start_time_seconds [STABLE] Start time of the container since unix epoch in seconds
        # TYPE container_start_time_seconds gauge
        container_start_time_seconds{container="main",namespace="default",pod="web"} 1.7673228005e+09
        # HELP node_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the node in core-seconds
        # TYPE node_cpu_usage_seconds_total counter
        node_cpu_usage_seconds_total 9 1767323045678
        # HELP node_memory_working_set_bytes [STABLE] Current working set of the node in bytes
        # TYPE node_memory_working_set_bytes gauge
        node_memory_working_set_bytes 2e+06 1767323045678
        # HELP pod_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the pod in core-seconds
        # TYPE pod_cpu_usage_seconds_total counter
        pod_cpu_usage_seconds_total{namespace="default",pod="web"} 2.5 1767323045678
        # HELP pod_memory_working_set_bytes [STABLE] Current working set of the pod in bytes
        # TYPE pod_memory_working_set_bytes gauge
        pod_memory_working_set_bytes{namespace="default",pod="web"} 2e+06 1767323045678
        # HELP resource_scrape_error [STABLE] 1 if there was an error while getting container metrics, 0 otherwise
        # TYPE resource_scrape_error gauge
        resource_scrape_error 0
        # HELP scrape_error [ALPHA] (Deprecated since 1.29.0) 1 if there was an error while getting container metrics, 0 otherwise
        # TYPE scrape_error gauge
        scrape_error 0
    "#]]
    .assert_eq(&text(Some(&seen())));
    assert!(text(None).ends_with("\nscrape_error 1\n"));
}
