//! Who is taken in by a node that is short of something, or has others on it.

use super::super::context::testing::bare;
use super::*;
use crate::pods::sizes;
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

fn asking(cpu: &str, status: &Value) -> Pod {
    let resources = json!({ "requests": { "cpu": cpu } });
    let mut pod = pod(
        "Burstable",
        &json!({ "containers": [
        { "name": "main", "resources": resources },
    ] }),
    );
    pod.status = serde_json::from_value(status.clone()).unwrap();
    pod
}

#[tokio::test]
async fn a_resize_that_waits_takes_no_room() {
    let scratch = tempfile::tempdir().unwrap();
    let stop = CancellationToken::new();
    let mut context = bare(scratch.path(), &stop);
    context.allocatable = Amounts::of(&json!({ "cpu": "2", "pods": "10" }));
    let pods = super::super::Pods::new(Arc::new(context), stop.clone());
    let shared = &pods.shared;
    let grows = asking("1900m", &json!({ "phase": "Running" }));
    let handle = |pod: Pod| Handle {
        desired: tokio::sync::watch::Sender::new(Desired::of(Arc::new(pod))),
        wake: Arc::default(),
        is_admitted: true,
    };
    shared.workers.lock().insert("old".into(), handle(grows));
    let given = sizes::Amounts {
        cpu_milli: 500,
        memory_bytes: 0,
    };
    shared.context.ledger.hold("old", given);
    let try_in = |cpu: &str| {
        let new = asking(cpu, &json!({}));
        let reasons = shared.try_in("new", &new, &Node::default());
        reasons.iter().map(Reason::reason).collect::<Vec<_>>()
    };
    assert_eq!(try_in("1500m"), [""; 0]);
    assert_eq!(try_in("1501m"), ["OutOfcpu"]);
    let gone = |handle: &Handle| handle.desired.send_modify(|desired| desired.is_gone = true);
    shared.workers.lock().get("old").map(gone).unwrap();
    assert_eq!(
        try_in("2"),
        [""; 0],
        "what is deleted by force holds no room"
    );
    assert_eq!(try_in("2001m"), ["OutOfcpu"]);
    stop.cancel();
}
