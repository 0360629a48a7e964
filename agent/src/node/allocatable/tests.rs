//! Reservations against a machine of 4 GiB.

use super::super::facts::HugePages;
use super::*;
use expect_test::expect;
use serde_json::json;

fn facts() -> Facts {
    Facts {
        cpus: 4,
        memory_bytes: 4 << 30,
        disk_bytes: 100 << 30,
        huge_pages: vec![HugePages {
            page_bytes: 2 << 20,
            count: 256,
        }],
        ..Facts::default()
    }
}

#[test]
fn what_is_reserved_kept_free_and_huge_is_taken_off() {
    let resources = Resources {
        system_reserved: Amounts::of(&json!({ "cpu": "500m", "memory": "256Mi", "pid": "100" })),
        kube_reserved: Amounts::of(&json!({ "memory": "128Mi", "ephemeral-storage": "1Gi" })),
        ..Resources::default()
    };
    let capacity = capacity(&facts(), &resources);
    expect![[r#"{"cpu":"4","ephemeral-storage":"100Gi","hugepages-2Mi":"512Mi","memory":"4Gi","pods":"110"}"#]]
        .assert_eq(&capacity.to_value().to_string());
    // Memory: 4096 - 384 reserved - 100 for eviction - 512 of huge pages.
    expect![[r#"{"cpu":"3500m","ephemeral-storage":"100931731376","hugepages-2Mi":"512Mi","memory":"3100Mi","pods":"110"}"#]]
        .assert_eq(&allocatable(&capacity, &resources).to_value().to_string());
    let pods = less_reserved(&capacity, &resources);
    assert_eq!(pods.get(MEMORY).unwrap().to_string(), "3712Mi");
    assert_eq!(check(&capacity, &resources), Ok(()));
}

#[test]
fn more_than_there_is_leaves_nothing_and_is_refused() {
    let resources = Resources {
        system_reserved: Amounts::of(&json!({ "cpu": "5" })),
        ..Resources::default()
    };
    let capacity = capacity(&facts(), &resources);
    let left = allocatable(&capacity, &resources);
    assert!(left.get(CPU).unwrap().is_zero());
    expect!["resource \"cpu\" has a reservation of 5 but a capacity of 4"]
        .assert_eq(&check(&capacity, &resources).unwrap_err());
}
