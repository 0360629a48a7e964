//! The words that a user reads.

use super::super::signal::Signal;
use super::super::threshold::Value;
use super::super::tracker::Observation;
use super::*;
use crate::runtime::Usage;
use crate::usage::DiskUse;
use crate::usage::pods::{ContainerDisk, ContainerUsage, PodDisk};
use coracle_api::quantity::Format;
use expect_test::expect;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

fn pod() -> Pod {
    serde_json::from_value(json!({
        "metadata": { "name": "web" },
        "spec": { "containers": [
            { "name": "c", "resources": { "requests": { "memory": "64Mi" } } },
            { "name": "small", "resources": { "requests": { "memory": "64Mi" } } },
        ] },
    }))
    .unwrap()
}

fn usage() -> PodUsage {
    let container = |name: &str, mib: u64| ContainerUsage {
        name: name.into(),
        usage: Usage {
            memory_working_set_bytes: mib << 20,
            ..Usage::default()
        },
    };
    PodUsage {
        containers: vec![container("c", 200), container("small", 3)],
        disk: Some(Arc::new(PodDisk {
            containers: vec![ContainerDisk {
                name: "c".into(),
                root: DiskUse {
                    bytes: 4096,
                    inodes: 1,
                },
                logs: DiskUse {
                    bytes: 4096,
                    inodes: 1,
                },
            }],
            ..PodDisk::default()
        })),
        ..PodUsage::default()
    }
}

fn seen(signal: Signal, available: &str) -> (Threshold, Observations) {
    let observed = Observation {
        available: Quantity::parse(available).unwrap(),
        capacity: Quantity::from_units(1 << 30, Format::BinarySi),
    };
    let threshold = Threshold {
        signal,
        value: Value::Quantity(Quantity::parse("100Mi").unwrap()),
        grace: Duration::ZERO,
        min_reclaim: None,
    };
    (threshold, Observations::from([(signal, observed)]))
}

#[test]
fn the_words_are_upstreams() {
    let (threshold, memory) = seen(Signal::MemoryAvailable, "90Mi");
    let message = of(
        Resource::Memory,
        &pod(),
        Some(&usage()),
        &[threshold],
        &memory,
    );
    expect!["The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. Container c was using 200Mi, request is 64Mi, has larger consumption of memory. "]
        .assert_eq(&message.text);
    assert_eq!(message.annotations["offending_containers"], "c");
    assert_eq!(message.annotations["offending_containers_usage"], "200Mi");
    assert_eq!(message.annotations["starved_resource"], "memory");
    let (threshold, disk) = seen(Signal::NodeFsAvailable, "90Mi");
    let message = of(
        Resource::EphemeralStorage,
        &pod(),
        Some(&usage()),
        &[threshold],
        &disk,
    );
    expect!["The node was low on resource: ephemeral-storage. Threshold quantity: 100Mi, available: 90Mi. Container c was using 8Ki, request is 0, has larger consumption of ephemeral-storage. "]
        .assert_eq(&message.text);
}

#[test]
fn what_is_not_known_is_not_said() {
    let message = of(Resource::Pids, &pod(), None, &[], &Observations::new());
    assert_eq!(message.text, "The node was low on resource: pids. ");
    let conditions = BTreeSet::from([Condition::Memory, Condition::Disk]);
    assert_eq!(
        refused(&conditions),
        "The node had condition: [DiskPressure MemoryPressure]. "
    );
}
