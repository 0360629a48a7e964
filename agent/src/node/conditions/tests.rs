//! Conditions of a healthy node and of one in trouble.

use super::{Disk, Measures, make};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeCondition;

fn text(conditions: &[NodeCondition]) -> String {
    let lines: Vec<_> = conditions
        .iter()
        .map(|condition| {
            format!(
                "{}={} {}: {}",
                condition.type_,
                condition.status,
                condition.reason.as_deref().unwrap_or_default(),
                condition.message.as_deref().unwrap_or_default()
            )
        })
        .collect();
    lines.join("\n")
}

const HEALTHY: Measures = Measures {
    disk: Some(Disk {
        total_bytes: 100,
        free_bytes: 50,
        files: 0,
        free_files: 0,
    }),
    available_memory_bytes: Some(1 << 30),
    process_count: Some(100),
    process_ids_max: 32768,
    has_network: true,
};

#[test]
fn a_healthy_node_says_so() {
    expect_test::expect![[r#"
        MemoryPressure=False KubeletHasSufficientMemory: kubelet has sufficient memory available
        DiskPressure=False KubeletHasNoDiskPressure: kubelet has no disk pressure
        PIDPressure=False KubeletHasSufficientPID: kubelet has sufficient PID available
        Ready=True KubeletReady: kubelet is posting ready status"#]]
    .assert_eq(&text(&make(&HEALTHY, &[], Timestamp::UNIX_EPOCH)));
}

#[test]
fn trouble_shows_and_time_is_kept_while_nothing_changes() {
    let first = make(&HEALTHY, &[], Timestamp::UNIX_EPOCH);
    let later = Timestamp::from_second(60).unwrap();
    let full = Measures {
        disk: Some(Disk {
            total_bytes: 100,
            free_bytes: 4,
            files: 0,
            free_files: 0,
        }),
        has_network: false,
        ..HEALTHY
    };
    let second = make(&full, &first, later);
    let since = |at: usize| {
        second[at]
            .last_transition_time
            .as_ref()
            .unwrap()
            .0
            .as_second()
    };
    assert_eq!((since(0), since(1), since(3)), (0, 60, 60));
    assert_eq!(second[1].reason.as_deref(), Some("KubeletHasDiskPressure"));
    assert_eq!(second[3].reason.as_deref(), Some("KubeletNotReady"));
}
