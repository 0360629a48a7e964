//! Conditions of a healthy node and of one in trouble.

use super::{Measures, make};
use crate::pressure::Condition;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeCondition;
use std::collections::BTreeSet;

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

fn healthy() -> Measures {
    Measures {
        pressures: BTreeSet::new(),
        problem: None,
    }
}

#[test]
fn a_healthy_node_says_so() {
    expect_test::expect![[r#"
        MemoryPressure=False KubeletHasSufficientMemory: kubelet has sufficient memory available
        DiskPressure=False KubeletHasNoDiskPressure: kubelet has no disk pressure
        PIDPressure=False KubeletHasSufficientPID: kubelet has sufficient PID available
        Ready=True KubeletReady: kubelet is posting ready status"#]]
    .assert_eq(&text(&make(&healthy(), &[], Timestamp::UNIX_EPOCH)));
}

#[test]
fn trouble_shows_and_time_is_kept_while_nothing_changes() {
    let first = make(&healthy(), &[], Timestamp::UNIX_EPOCH);
    let later = Timestamp::from_second(60).unwrap();
    let full = Measures {
        pressures: BTreeSet::from([Condition::Disk]),
        problem: Some(String::from("no network yet")),
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
