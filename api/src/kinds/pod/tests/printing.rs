//! What `kubectl get pods` says of a pod.

use super::*;

fn terminated(code: i64, reason: &str) -> Value {
    json!({ "exitCode": code, "reason": reason, "finishedAt": "1970-01-01T00:05:00Z" })
}

#[test]
fn a_running_pod() {
    let status = json!({
        "phase": "Running",
        "podIPs": [{ "ip": "10.42.0.2" }],
        "conditions": [{ "type": "Ready", "status": "True" }],
        "containerStatuses": [{
            "name": "web", "ready": true, "restartCount": 2, "state": { "running": {} },
            "lastState": { "terminated": terminated(1, "Error") },
        }],
    });
    check_status(
        status,
        600,
        expect![[r#"
        Name: web
        Ready: 1/1
        Status: Running
        Restarts: 2 (5m ago)
        Age: <unknown>
        IP: 10.42.0.2
        Node: <none>
        Nominated Node: <none>
        Readiness Gates: <none>"#]],
    );
}

#[test]
fn reasons() {
    let reason = |status: Value| {
        let mut pod = web();
        pod["status"] = status;
        super::super::summary::of(&object(pod)).reason
    };
    let of_container = |state: Value| {
        reason(json!({
            "phase": "Running", "containerStatuses": [{ "name": "web", "state": state }],
        }))
    };
    let of_init = |state: Value| {
        let mut pod = with(json!({ "initContainers": [{ "name": "a" }, { "name": "b" }] }));
        pod["status"] = json!({
            "phase": "Pending", "initContainerStatuses": [{ "name": "a", "state": state }],
        });
        super::super::summary::of(&object(pod)).reason
    };
    let gated = json!({ "phase": "Pending", "conditions": [
        { "type": "PodScheduled", "reason": "SchedulingGated" },
    ] });
    let all = [
        reason(json!({ "phase": "Pending" })),
        reason(json!({ "phase": "Failed", "reason": "Evicted" })),
        reason(gated),
        of_container(json!({ "waiting": { "reason": "CrashLoopBackOff" } })),
        of_container(json!({ "terminated": terminated(137, "OOMKilled") })),
        of_container(json!({ "terminated": { "exitCode": 3 } })),
        of_container(json!({ "terminated": { "exitCode": 3, "signal": 9 } })),
        of_init(json!({ "running": {} })),
        of_init(json!({ "waiting": { "reason": "PodInitializing" } })),
        of_init(json!({ "waiting": { "reason": "ErrImagePull" } })),
        of_init(json!({ "terminated": terminated(1, "Error") })),
        of_init(json!({ "terminated": { "exitCode": 3 } })),
    ];
    expect![[r#"
        Pending
        Evicted
        SchedulingGated
        CrashLoopBackOff
        OOMKilled
        ExitCode:3
        Signal:9
        Init:0/2
        Init:0/2
        Init:ErrImagePull
        Init:Error
        Init:ExitCode:3"#]]
    .assert_eq(&all.join("\n"));
}

#[test]
fn a_pod_on_its_way_out() {
    let mut pod = web();
    pod["metadata"]["deletionTimestamp"] = "1970-01-01T00:00:00Z".into();
    pod["status"] = json!({ "phase": "Running" });
    let reason = |pod: &Value| super::super::summary::of(&object(pod.clone())).reason;
    assert_eq!(reason(&pod), "Terminating");
    pod["status"]["reason"] = "NodeLost".into();
    assert_eq!(reason(&pod), "Unknown");
}

#[test]
fn sidecars_count_and_completed_pods_may_still_run() {
    let mut pod = with(json!({
        "initContainers": [{ "name": "side", "image": "a", "restartPolicy": "Always" }],
        "containers": [{ "name": "a", "image": "a" }, { "name": "b", "image": "b" }],
        "readinessGates": [{ "conditionType": "example.com/ok" }],
    }));
    pod["status"] = json!({
        "phase": "Running",
        "conditions": [{ "type": "Ready", "status": "False" }],
        "initContainerStatuses": [
            { "name": "side", "started": true, "ready": true, "state": { "running": {} } },
        ],
        "containerStatuses": [
            { "name": "a", "state": { "terminated": terminated(0, "Completed") } },
            { "name": "b", "ready": true, "state": { "running": {} } },
        ],
    });
    check_row(
        "pods",
        pod,
        0,
        expect![[r#"
        Name: web
        Ready: 2/3
        Status: NotReady
        Restarts: 0
        Age: <unknown>
        IP: <none>
        Node: <none>
        Nominated Node: <none>
        Readiness Gates: 0/1"#]],
    );
}
