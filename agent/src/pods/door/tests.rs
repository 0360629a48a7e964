//! Who is taken in by a node that is short of something.

use super::*;
use serde_json::{Value, json};

fn pod(class: &str, more: &Value) -> Pod {
    let mut pod = json!({
        "metadata": { "name": "web" },
        "spec": { "containers": [] },
        "status": { "qosClass": class },
    });
    for (key, value) in more.as_object().unwrap() {
        pod["spec"][key] = value.clone();
    }
    serde_json::from_value(pod).unwrap()
}

#[test]
fn pressure_keeps_out_whom_upstream_keeps_out() {
    let nothing = json!({});
    let critical = json!({ "priority": 2_000_000_000 });
    let bears = json!({ "tolerations": [
        { "key": "node.kubernetes.io/memory-pressure", "operator": "Exists" },
    ] });
    let memory = BTreeSet::from([Condition::Memory]);
    let both = BTreeSet::from([Condition::Memory, Condition::Disk]);
    for (class, more, conditions, is_taken) in [
        ("BestEffort", &nothing, &BTreeSet::new(), true),
        ("BestEffort", &nothing, &memory, false),
        ("BestEffort", &bears, &memory, true),
        ("Burstable", &nothing, &memory, true),
        ("Burstable", &nothing, &both, false),
        ("Guaranteed", &nothing, &both, false),
        ("BestEffort", &bears, &both, false),
        ("BestEffort", &critical, &both, true),
    ] {
        let refused = under_pressure(&pod(class, more), conditions);
        assert_eq!(refused.is_none(), is_taken, "{class} {more} {conditions:?}");
    }
    let refused = under_pressure(&pod("BestEffort", &nothing), &memory).unwrap();
    assert_eq!(refused.reason, "Evicted");
    assert_eq!(
        refused.message,
        "The node had condition: [MemoryPressure]. "
    );
}
