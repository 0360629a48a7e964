//! A pod for which there is no room, and less important ones that have it.

use crate::lab::{Cluster, Lab, wait};
use crate::workloads::{IMAGE, with_images};

/// The node has one slot, and every pod here takes it.
const SLOT: &str = "example.com/slot";

fn class(name: &str, value: i32, policy: &str) -> String {
    format!(
        r#"
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {{ name: {name} }}
value: {value}
preemptionPolicy: {policy}
---"#
    )
}

/// Ends when it is told to, and not when it is asked to.
fn pod(name: &str, class: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: {name} }}
spec:
  priorityClassName: {class}
  terminationGracePeriodSeconds: 3600
  containers:
  - name: c
    image: {IMAGE}
    command: ["sh", "-c", "trap '' TERM; until [ -e /end ]; do sleep 1; done"]
    resources: {{ limits: {{ {SLOT}: 1 }} }}
---"#
    )
}

fn told_of(cluster: &Cluster, object: &str, text: &str) {
    wait(text, || cluster.events(object).contains(text).then_some(()));
}

#[test]
fn a_pod_takes_the_place_of_one_that_is_less_important() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "full");
    let node = cluster.value(&["nodes"], "{.items[0].metadata.name}");
    let slot = format!(r#"{{"status": {{"capacity": {{"{SLOT}": "1"}}}}}}"#);
    cluster.kubectl(&[
        "patch",
        "node",
        &node,
        "--subresource=status",
        "--patch",
        &slot,
    ]);
    cluster.wait_value(
        &["node", &node],
        "{.status.allocatable.example\\.com/slot}",
        "1",
    );
    cluster.apply(&format!(
        "{}{}{}{}",
        class("low", 1, "PreemptLowerPriority"),
        class("polite", 1000, "Never"),
        class("high", 2000, "PreemptLowerPriority"),
        pod("low", "low"),
    ));
    cluster.wait_value(&["pod", "low"], "{.status.phase}", "Running");

    cluster.apply(&pod("polite", "polite"));
    let why = "0/1 nodes are available: 1 Insufficient example.com/slot. \
               no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never.";
    let unscheduled = "{.status.conditions[?(@.type==\"PodScheduled\")].message}";
    cluster.wait_value(&["pod", "polite"], unscheduled, why);
    assert_eq!(
        cluster.value(&["pod", "low"], "{.metadata.deletionTimestamp}"),
        ""
    );

    cluster.apply(&pod("high", "high"));
    let nominated = "{.status.nominatedNodeName}";
    cluster.wait_value(&["pod", "high"], nominated, &node);
    let uid = cluster.value(&["pod", "high"], "{.metadata.uid}");
    told_of(
        &cluster,
        "low",
        &format!("Preempted by pod {uid} on node {node}"),
    );
    let target = |field: &str| {
        let path = format!("{{.status.conditions[?(@.type==\"DisruptionTarget\")].{field}}}");
        cluster.value(&["pod", "low"], &path)
    };
    assert_eq!(target("reason"), "PreemptionByScheduler");
    assert_eq!(
        target("message"),
        "default-scheduler: preempting to accommodate a higher priority pod"
    );
    assert_ne!(
        cluster.value(&["pod", "low"], "{.metadata.deletionTimestamp}"),
        ""
    );
    assert_eq!(
        cluster.value(&["pod", "high"], "{.spec.nodeName}"),
        "",
        "low still runs"
    );

    cluster.kubectl(&["exec", "low", "--", "touch", "/end"]);
    cluster.wait_value(&["pod", "high"], "{.status.phase}", "Running");
    assert_eq!(
        cluster.value(&["pod", "high"], nominated),
        "",
        "it is there"
    );
    assert_eq!(cluster.value(&["pod", "polite"], "{.spec.nodeName}"), "");
}
