//! Defaults, printed cells, validation and durability of a Node.

use crate::catalogue;
use crate::kinds::testing::{check_errors, check_row, defaulted, object, update_errors};
use crate::resource::{Durability, Part};
use expect_test::expect;
use serde_json::json;

fn node() -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": "edge-1", "creationTimestamp": "1970-01-01T00:00:00Z",
            "labels": { "node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "edge" },
        },
        "spec": { "podCIDR": "10.42.0.0/24" },
        "status": {
            "capacity": { "cpu": "2000m", "memory": "1024Ki" },
            "conditions": [
                { "type": "Ready", "status": "True", "lastHeartbeatTime": "1970-01-01T00:00:05Z" },
            ],
            "addresses": [{ "type": "InternalIP", "address": "192.0.2.7" }],
            "nodeInfo": {
                "kubeletVersion": "v1.36.0", "osImage": "Debian", "kernelVersion": "6.12",
                "architecture": "amd64", "containerRuntimeVersion": "coracle://0.1.0",
            },
        },
    })
}

#[test]
fn allocatable_is_capacity_and_ranges_have_two_names() {
    expect![[r#"
        {"podCIDR":"10.42.0.0/24","podCIDRs":["10.42.0.0/24"]}
        {"cpu":"2","memory":"1Mi"}"#]]
    .assert_eq(&{
        let node = defaulted("nodes", node());
        format!(
            "{}\n{}",
            node.get(&["spec"]).unwrap(),
            node.get(&["status", "allocatable"]).unwrap()
        )
    });
}

#[test]
fn printed() {
    check_row(
        "nodes",
        node(),
        100,
        expect![[r#"
        Name: edge-1
        Status: Ready
        Roles: control-plane,edge
        Age: 100s
        Version: v1.36.0
        Internal-IP: 192.0.2.7
        External-IP: <none>
        OS-Image: Debian
        Kernel-Version: 6.12 (amd64)
        Container-Runtime: coracle://0.1.0"#]],
    );
}

#[test]
fn taints_are_unique_and_well_formed() {
    let mut bad = node();
    bad["spec"]["taints"] = json!([
        { "key": "a", "effect": "NoSchedule" },
        { "key": "a", "effect": "NoSchedule", "value": "x" },
        { "key": "-", "effect": "Never" },
    ]);
    bad["status"]["capacity"]["cpu"] = "-1".into();
    check_errors(
        "nodes",
        bad,
        expect![[r#"
            metadata.taints[1]: Duplicate value: {"Key":"a","Value":"x","Effect":"NoSchedule","TimeAdded":null}: taints must be unique by key and effect pair
            metadata.taints[2].key: Invalid value: "-": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            metadata.taints[2].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"
            status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0
            status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0"#]],
    );
}

#[test]
fn ranges_do_not_change_once_set() {
    let mut new = node();
    new["spec"] = json!({ "podCIDRs": ["10.42.1.0/24"], "podCIDR": "10.42.1.0/24" });
    update_errors(
        "nodes",
        new,
        node(),
        Part::Main,
        expect![[
            r#"spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid"#
        ]],
    );
}

#[test]
fn a_heartbeat_is_a_renewal_and_a_change_is_not() {
    let rules = catalogue::find("", "v1", "nodes").unwrap().rules;
    let old = object(node());
    let mut beat = node();
    beat["status"]["conditions"][0]["lastHeartbeatTime"] = "1970-01-01T00:00:15Z".into();
    let durability = rules.durability(&object(beat), Some(&old), Part::Status);
    assert_eq!(durability, Durability::Renewal);
    let mut change = node();
    change["status"]["conditions"][0]["status"] = "False".into();
    let durability = rules.durability(&object(change), Some(&old), Part::Status);
    assert_eq!(durability, Durability::Synced);
}
