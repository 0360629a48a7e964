//! Flags as a kubelet has them, good and bad.

use super::*;
use crate::cli::{Cli, Command};
use crate::settings::{agent, file};
use clap::Parser;
use std::time::Duration;

fn read(flags: &[&str]) -> Result<Resources, BadSetting> {
    let start = ["coracle", "agent", "--server=https://gateway:6443"];
    let line = start.iter().chain(flags);
    let cli = Cli::try_parse_from(line).unwrap();
    let Command::Agent(mut command) = cli.command else {
        panic!("another command");
    };
    file::merge(file::Targets {
        common: &mut command.common,
        server: None,
        agent: Some(&mut command.agent),
        dns: None,
    })?;
    agent(&command.common, &command.agent, "edge", true).map(|settings| settings.resources)
}

#[test]
fn nothing_said_is_the_default() {
    assert_eq!(read(&[]).unwrap(), Resources::default());
}

#[test]
fn all_is_read_as_a_kubelet_reads_it() {
    let found = read(&[
        "--system-reserved=cpu=500m,memory=256Mi",
        "--kube-reserved=pid=100",
        "--eviction-hard=memory.available<5%,nodefs.available<1Gi",
        "--eviction-soft=memory.available<10%",
        "--eviction-soft-grace-period=memory.available=1m",
        "--eviction-minimum-reclaim=nodefs.available=500Mi",
        "--eviction-max-pod-grace-period=-1",
        "--eviction-pressure-transition-period=30s",
        "--max-pods=30",
        "--image-gc-high-threshold=70",
        "--image-gc-low-threshold=50",
        "--minimum-image-ttl-duration=1m",
        "--image-maximum-gc-age=24h",
        "--container-log-max-size=1Mi",
        "--container-log-max-files=2",
    ])
    .unwrap();
    assert_eq!(
        found.system_reserved.to_value().to_string(),
        r#"{"cpu":"500m","memory":"256Mi"}"#
    );
    let names: Vec<_> = found
        .eviction
        .thresholds
        .iter()
        .map(|threshold| (threshold.signal.name(), threshold.grace.as_secs()))
        .collect();
    assert_eq!(
        names,
        [
            ("memory.available", 0),
            ("memory.available", 60),
            ("allocatableMemory.available", 0),
            ("nodefs.available", 0),
        ]
    );
    assert_eq!(found.eviction.max_pod_grace_seconds, -1);
    assert_eq!(found.pods_max, 30);
    assert_eq!(found.images.unused_max, Duration::from_secs(24 * 3600));
    assert_eq!((found.logs.bytes_max, found.logs.files_max), (1 << 20, 2));
}

#[test]
fn no_hard_threshold_at_all_can_be_said() {
    let found = read(&["--eviction-hard="]).unwrap();
    assert!(found.eviction.thresholds.is_empty());
}

#[test]
fn the_file_takes_lists_and_maps() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.yaml");
    let text = "system-reserved: { memory: 256Mi }\n\
                eviction-hard: { memory.available: 5%, nodefs.available: 10% }\n\
                eviction-soft: [\"memory.available<10%\"]\n\
                eviction-soft-grace-period: { memory.available: 1m }\n\
                max-pods: 20\n";
    std::fs::write(&path, text).unwrap();
    let config = format!("--config={}", path.display());
    let found = read(&[&config]).unwrap();
    assert_eq!(found.eviction.thresholds.len(), 4);
    assert_eq!(found.pods_max, 20);
    assert!(found.system_reserved.has("memory"));
    std::fs::write(&path, "max-pods: { a: 1 }\n").unwrap();
    let bad = read(&[&config]).unwrap_err().to_string();
    assert!(bad.contains("max-pods: must be text"), "{bad}");
}

#[test]
fn bad_values_say_what_is_right() {
    let bad = [
        "--system-reserved=gpu=1",
        "--system-reserved=cpu",
        "--kube-reserved=cpu=-1",
        "--eviction-hard=memory.available=100Mi",
        "--eviction-hard=memory<100Mi",
        "--eviction-soft=memory.available<200Mi",
        "--eviction-max-pod-grace-period=soon",
        "--max-pods=-3",
        "--image-gc-high-threshold=101",
        "--image-gc-low-threshold=85",
        "--image-maximum-gc-age=1m",
        "--container-log-max-size=0",
        "--container-log-max-files=1",
    ];
    let said: Vec<_> = bad
        .iter()
        .map(|flag| read(&[flag]).unwrap_err().to_string())
        .collect();
    let expected = [
        r#"--system-reserved "gpu=1": the name must be one of cpu, memory, ephemeral-storage, pid"#,
        r#"--system-reserved "cpu": must be NAME=QUANTITY, such as memory=256Mi"#,
        r#"--kube-reserved "cpu=-1": must not be below 0"#,
        r#"--eviction-hard "memory.available=100Mi": must be SIGNAL<QUANTITY, such as memory.available<100Mi"#,
        r#"--eviction-hard "memory<100Mi": the signal must be one of memory.available, allocatableMemory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree, pid.available"#,
        r#"--eviction-soft-grace-period "": must have a period for memory.available, which is in --eviction-soft"#,
        r#"--eviction-max-pod-grace-period "soon": must be a number of seconds"#,
        r#"--max-pods "-3": must be a number of at least 0"#,
        r#"--image-gc-high-threshold "101": must be a whole number from 0 to 100"#,
        r#"--image-gc-low-threshold "85": must be below --image-gc-high-threshold, which is 85"#,
        r#"--image-maximum-gc-age "1m": must be longer than --minimum-image-ttl-duration"#,
        r#"--container-log-max-size "0": must be a quantity above 0, such as 10Mi"#,
        r#"--container-log-max-files "1": must be a number of at least 2"#,
    ];
    assert_eq!(said, expected);
}
