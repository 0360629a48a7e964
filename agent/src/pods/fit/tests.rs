//! A node of 4 CPUs and 1 GiB, what is on it, and who comes.

use super::*;
use expect_test::expect;
use serde_json::{Value, json};

fn pod(spec: &Value) -> Pod {
    serde_json::from_value(json!({ "metadata": { "name": "web" }, "spec": spec })).unwrap()
}

fn asks(requests: &Value) -> Pod {
    pod(&json!({ "containers": [{ "name": "a", "resources": { "requests": requests } }] }))
}

fn node() -> Node {
    serde_json::from_value(json!({
        "metadata": { "name": "edge", "labels": { "site": "north", "size": "4" } },
        "spec": { "taints": [
            { "key": "gone", "effect": "NoExecute" },
            { "key": "busy", "effect": "NoSchedule" },
        ] },
    }))
    .unwrap()
}

fn tolerant(mut spec: Value) -> Pod {
    spec["tolerations"] = json!([{ "operator": "Exists" }]);
    if spec.get("containers").is_none() {
        spec["containers"] = json!([{ "name": "a" }]);
    }
    pod(&spec)
}

fn allocatable() -> Amounts {
    Amounts::of(&json!({
        "cpu": "4", "memory": "1Gi", "pods": "3", "ephemeral-storage": "10Gi",
        "hugepages-2Mi": "0", "example.com/gpu": "1",
    }))
}

fn said(pod: &Pod, others: &[Pod]) -> String {
    let others = others
        .iter()
        .map(|one| Share::of(one, asked::requests(one)));
    let others: Vec<_> = others.collect();
    let found = reasons(pod, &others, &allocatable(), &node());
    let lines = found
        .iter()
        .map(|reason| format!("{}: {}", reason.reason(), reason.message()));
    lines.collect::<Vec<_>>().join("\n")
}

fn with_toleration(mut pod: Pod) -> Pod {
    let toleration = serde_json::from_value(json!({ "operator": "Exists" })).unwrap();
    pod.spec.as_mut().unwrap().tolerations = Some(vec![toleration]);
    pod
}

#[test]
fn what_is_short_is_said_in_order() {
    let other = asks(&json!({ "cpu": "3", "memory": "512Mi" }));
    let small = with_toleration(asks(&json!({ "cpu": "1", "memory": "512Mi" })));
    assert_eq!(said(&small, std::slice::from_ref(&other)), "");
    let large = with_toleration(asks(&json!({
        "cpu": "1001m", "memory": "513Mi", "ephemeral-storage": "11Gi",
        "hugepages-2Mi": "2Mi", "example.com/gpu": "2", "example.com/unknown": "5",
    })));
    let others = [other, asks(&json!({})), asks(&json!({}))];
    expect![[r#"
        OutOfpods: Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3
        OutOfcpu: Node didn't have enough resource: cpu, requested: 1001, used: 3000, capacity: 4000
        OutOfmemory: Node didn't have enough resource: memory, requested: 537919488, used: 536870912, capacity: 1073741824
        OutOfephemeral-storage: Node didn't have enough resource: ephemeral-storage, requested: 11811160064, used: 0, capacity: 10737418240
        OutOfexample.com/gpu: Node didn't have enough resource: example.com/gpu, requested: 2, used: 0, capacity: 1
        OutOfhugepages-2Mi: Node didn't have enough resource: hugepages-2Mi, requested: 2097152, used: 0, capacity: 0"#]]
    .assert_eq(&said(&large, &others));
}

#[test]
fn a_node_that_is_another_is_said() {
    let affinity = "NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node \
                    affinity/selector";
    let term = |requirement: Value| {
        json!({ "affinity": { "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{ "matchExpressions": [requirement] }],
            },
        } } })
    };
    let north = json!({ "nodeSelector": { "site": "north" } });
    let south = json!({ "nodeSelector": { "site": "south" } });
    assert_eq!(said(&tolerant(north), &[]), "");
    assert_eq!(said(&tolerant(south), &[]), affinity);
    let larger = term(json!({ "key": "size", "operator": "Gt", "values": ["3"] }));
    assert_eq!(said(&tolerant(larger), &[]), "");
    let absent = term(json!({ "key": "size", "operator": "DoesNotExist" }));
    assert_eq!(said(&tolerant(absent), &[]), affinity);
}

#[test]
fn ports_and_taints_are_said() {
    let port = |host: Value| tolerant(json!({ "containers": [{ "name": "a", "ports": [host] }] }));
    let all = port(json!({ "containerPort": 80, "hostPort": 8080 }));
    let one = port(json!({ "containerPort": 80, "hostPort": 8080, "hostIP": "127.0.0.1" }));
    let udp = port(json!({ "containerPort": 80, "hostPort": 8080, "protocol": "UDP" }));
    let ports = "NodePorts: Predicate NodePorts failed: node(s) didn't have free ports for the \
                 requested pod ports";
    assert_eq!(said(&all, std::slice::from_ref(&one)), ports);
    assert_eq!(said(&udp, &[one]), "");
    assert_eq!(
        said(&asks(&json!({})), &[]),
        "TaintToleration: Predicate TaintToleration failed: node(s) had taints that the pod \
         didn't tolerate"
    );
    let mut fixed = asks(&json!({}));
    fixed.metadata.annotations =
        Some([("kubernetes.io/config.source".to_owned(), "file".to_owned())].into());
    assert_eq!(said(&fixed, &[]), "");
}
