//! How long the pods of an ending namespace are waited for.

use super::*;
use serde_json::json;

#[test]
fn the_longest_grace_of_a_live_pod_counts() {
    let pod = |phase: &str, grace: i64| -> Pod {
        serde_json::from_value(json!({
            "spec": {"containers": [], "terminationGracePeriodSeconds": grace},
            "status": {"phase": phase},
        }))
        .unwrap()
    };
    let pods = [
        pod("Running", 30),
        pod("Pending", 45),
        pod("Succeeded", 600),
    ];
    assert_eq!(grace_seconds(&pods), 45);
    assert_eq!(grace_seconds(&[]), 0);
}
