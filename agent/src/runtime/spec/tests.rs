//! Capabilities, mounts and limits of a specification.

use super::super::contract::{ContainerConfig, ContainerId, SandboxConfig, SandboxId, Security};
use super::super::record::SandboxRecord;
use super::*;

fn record(config: ContainerConfig) -> ContainerRecord {
    ContainerRecord {
        id: ContainerId("c".into()),
        sandbox: SandboxRecord {
            id: SandboxId("s".into()),
            config: SandboxConfig {
                hostname: "pod".into(),
                ..SandboxConfig::default()
            },
            created_at: jiff::Timestamp::UNIX_EPOCH,
            cgroup: "/root/pod".into(),
            boot_id: String::new(),
        },
        sandbox_directory: "/run/s".into(),
        config,
        created_at: jiff::Timestamp::UNIX_EPOCH,
        image_id: String::new(),
        image: crate::images::manifest::ImageConfig::default(),
        layers_count: 1,
        shim_cgroup: String::new(),
    }
}

fn granted(add: &[&str], drop: &[&str], privileged: bool) -> String {
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let security = Security {
        add_capabilities: list(add),
        drop_capabilities: list(drop),
        privileged,
        ..Security::default()
    };
    let config = ContainerConfig {
        security,
        ..ContainerConfig::default()
    };
    let available = list(&["CHOWN", "KILL", "NET_ADMIN", "SYS_TIME"]);
    capabilities(&record(config), &available).join(" ")
}

#[test]
fn capabilities_are_added_and_dropped() {
    assert_eq!(granted(&[], &[], false), "CAP_CHOWN CAP_KILL");
    assert_eq!(
        granted(&["NET_ADMIN"], &["cap_kill"], false),
        "CAP_CHOWN CAP_NET_ADMIN"
    );
    assert_eq!(granted(&[], &["ALL"], false), "");
    assert_eq!(granted(&["CAP_SYS_TIME"], &["ALL"], false), "CAP_SYS_TIME");
    assert_eq!(
        granted(&["ALL"], &["KILL"], false),
        "CAP_CHOWN CAP_NET_ADMIN CAP_SYS_TIME"
    );
    assert_eq!(
        granted(&[], &["ALL"], true),
        "CAP_CHOWN CAP_KILL CAP_NET_ADMIN CAP_SYS_TIME"
    );
    // What the host cannot give is left out, not asked for.
    assert_eq!(granted(&["SYS_RESOURCE"], &[], false), "CAP_CHOWN CAP_KILL");
}

#[test]
fn mounts_below_others_come_later() {
    let mount = |path: &str| Mount {
        container_path: path.into(),
        ..Mount::default()
    };
    let config = ContainerConfig {
        mounts: vec![mount("/data/cache/x"), mount("/data"), mount("/dev/shm")],
        ..ContainerConfig::default()
    };
    let mounts = mounts(&record(config), &Host::default());
    let targets: Vec<&str> = mounts
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["destination"].as_str().unwrap())
        .collect();
    assert_eq!(
        targets[6..],
        ["/etc/hostname", "/data", "/dev/shm", "/data/cache/x"],
        "{targets:?}"
    );
}

/// A resize and the pod's status convert by the kubelet's formula, and libcontainer by another.
#[test]
fn a_unified_host_is_told_the_weight_and_no_shares() {
    let resources = Resources {
        cpu_shares: 102,
        cpu_quota_us: 10_000,
        ..Resources::default()
    };
    let record = record(ContainerConfig {
        resources,
        ..ContainerConfig::default()
    });
    let limits = |unified_cgroups| {
        let host = Host {
            unified_cgroups,
            controllers: vec!["cpu".into()],
            ..Host::default()
        };
        super::resources(&record, &host)
    };
    assert_eq!(limits(false)["cpu"]["shares"], 102);
    assert_eq!(limits(false)["unified"], Value::Null);
    assert_eq!(limits(true)["cpu"]["shares"], Value::Null);
    assert_eq!(limits(true)["cpu"]["quota"], 10_000);
    assert_eq!(limits(true)["unified"]["cpu.weight"], "4");
}

#[test]
fn limits_the_host_lacks_are_left_out() {
    let config = ContainerConfig {
        resources: Resources {
            memory_limit_bytes: 1 << 20,
            cpu_shares: 1,
            pids_limit: 5,
            ..Resources::default()
        },
        ..ContainerConfig::default()
    };
    let host = Host {
        pid_namespace: None,
        own_groups: Vec::new(),
        controllers: vec!["cpu".into()],
        ..Host::default()
    };
    let resources = resources(&record(config), &host);
    assert_eq!(resources["cpu"]["shares"], 2);
    assert!(resources.get("memory").is_none() && resources.get("pids").is_none());
}

#[test]
fn a_device_that_is_given_stands_in_place_of_the_hosts() {
    let device = |path: &str, uid: u32, is_bound: bool| Given {
        path: path.into(),
        kind: 'b',
        major: 8,
        minor: 0,
        mode: 0o660,
        uid,
        gid: 6,
        read_only: false,
        is_bound,
    };
    let host = Host {
        devices: vec![
            device("/dev/sda", 0, false),
            device("/dev/sdb", 0, false),
            device("/dev/sdc", 0, false),
        ],
        given: vec![
            device("/dev/sda", 7, false),
            device("/dev/sdb", 8, true),
            device("/data/raw", 9, true),
        ],
        ..Host::default()
    };
    let record = record(ContainerConfig::default());
    let user = User::default();
    let spec = build(&record, Path::new("rootfs"), &user, &[], &host);
    let made = spec["linux"]["devices"].as_array().unwrap().iter();
    let made: Vec<String> = made
        .map(|one| format!("{} {}:{}", one["path"], one["uid"], one["gid"]))
        .collect();
    assert_eq!(made, ["\"/dev/sdc\" 0:6", "\"/dev/sda\" 7:6"]);
    let rules = spec["linux"]["resources"]["devices"].as_array().unwrap();
    assert_eq!(
        rules.len(),
        1 + host.given.len(),
        "what is mounted may be opened too"
    );
}
