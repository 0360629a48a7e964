//! Care of a node with kubectl: cordon, drain, taints; and what the events of a pod tell.

use crate::lab::{Cluster, Lab, wait};
use crate::workloads::{IMAGE, web, with_images};

fn pod(name: &str, more: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: {name} }}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: {IMAGE}
    command: ["sh", "-c", "trap 'exit 0' TERM; while true; do sleep 1; done"]
{more}
"#
    )
}

fn reasons(cluster: &Cluster, name: &str) -> Vec<String> {
    let path = "{range .items[*]}{.metadata.resourceVersion} {.reason}{\"\\n\"}{end}";
    let field = format!("involvedObject.name={name}");
    let text = cluster.value(&["events", "--field-selector", &field], path);
    let mut rows: Vec<(u64, String)> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(at, reason)| (at.parse().unwrap(), reason.to_owned()))
        .collect();
    rows.sort();
    rows.into_iter().map(|(_, reason)| reason).collect()
}

#[test]
fn a_node_is_drained_and_taken_back() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "drain");
    cluster.apply(&web(IMAGE, 2));
    cluster.apply(&pod("scratch", "  volumes: [{ name: s, emptyDir: {} }]"));
    cluster.wait_value(&["deployment", "web"], "{.status.readyReplicas}", "2");
    cluster.wait_value(&["pod", "scratch"], "{.status.phase}", "Running");
    let refused = cluster.try_kubectl(&["drain", "drain"]).unwrap_err();
    assert!(refused.contains("cannot delete"), "{refused}");
    let before = cluster.kubectl(&["get", "pods", "-o", "name"]);

    let drained = cluster.kubectl(&[
        "drain",
        "drain",
        "--force",
        "--delete-emptydir-data",
        "--ignore-daemonsets",
        "--timeout=100s",
    ]);
    for part in ["evicted", "node/drain drained"] {
        assert!(drained.contains(part), "should say {part:?}: {drained}");
    }
    let after = cluster.kubectl(&["get", "pods", "-o", "name"]);
    for name in before.lines() {
        assert!(!after.contains(name), "{name} is still there: {after}");
    }
    let node = cluster.kubectl(&["get", "node", "drain"]);
    assert!(node.contains("Ready,SchedulingDisabled"), "{node}");
    let again = cluster.kubectl(&["cordon", "drain"]);
    assert!(again.contains("already cordoned"), "{again}");
    wait("the new pods wait", || {
        let pods = cluster.kubectl(&["get", "pods", "-l", "app=web"]);
        (pods.matches("Pending").count() == 2).then_some(())
    });
    cluster.kubectl(&["uncordon", "drain"]);
    cluster.wait_value(&["deployment", "web"], "{.status.readyReplicas}", "2");
    wait("the events tell of the cordon and its end", || {
        let told = reasons(&cluster, "drain");
        let has = |reason: &str| told.iter().any(|one| one == reason);
        (has("NodeNotSchedulable") && has("NodeSchedulable")).then_some(())
    });
}

#[test]
fn a_taint_keeps_pods_away_or_drives_them_off() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "taints");
    cluster.apply(&pod("early", ""));
    let tolerant = "  tolerations: [{ key: site, operator: Exists }]";
    cluster.apply(&pod("tolerant", tolerant));
    for name in ["early", "tolerant"] {
        cluster.wait_value(&["pod", name], "{.status.phase}", "Running");
    }
    cluster.kubectl(&["taint", "node", "taints", "site=closed:NoSchedule"]);
    let twice = cluster.try_kubectl(&["taint", "node", "taints", "site=closed:NoSchedule"]);
    assert!(
        twice
            .unwrap_err()
            .contains("already has site taint(s) with same effect(s)")
    );
    cluster.apply(&pod("late", ""));
    let reason = "{.status.conditions[?(@.type==\"PodScheduled\")].message}";
    let message = wait("the late pod is told why", || {
        Some(cluster.value(&["pod", "late"], reason)).filter(|text| !text.is_empty())
    });
    assert!(message.contains("untolerated taint"), "{message}");
    assert_eq!(
        cluster.value(&["pod", "early"], "{.status.phase}"),
        "Running"
    );

    cluster.kubectl(&["taint", "node", "taints", "site=closed:NoExecute"]);
    wait("the intolerant pod is driven off", || {
        cluster.try_kubectl(&["get", "pod", "early"]).err()
    });
    wait("that is told", || {
        let told = reasons(&cluster, "early");
        told.iter()
            .any(|reason| reason == "TaintManagerEviction")
            .then_some(())
    });
    let phase = cluster.value(&["pod", "tolerant"], "{.status.phase}");
    assert_eq!(phase, "Running");
    cluster.kubectl(&["taint", "node", "taints", "site-"]);
    cluster.wait_value(&["pod", "late"], "{.status.phase}", "Running");
}

#[test]
fn the_events_of_a_pod_come_in_the_order_of_its_life() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "story");
    cluster.apply(&pod("told", ""));
    cluster.wait_value(&["pod", "told"], "{.status.phase}", "Running");
    cluster.kubectl(&["delete", "pod", "told"]);
    // What the node tells comes in its order; the scheduler tells on its own.
    let of_node = ["Pulled", "Created", "Started", "Killing"];
    wait("every step is told, in order", || {
        let (scheduled, rest): (Vec<_>, Vec<_>) = reasons(&cluster, "told")
            .into_iter()
            .partition(|reason| reason == "Scheduled");
        (scheduled.len() == 1 && rest == of_node).then_some(())
    });
    let told = cluster.kubectl(&["events", "--for", "pod/told"]);
    for reason in of_node.into_iter().chain(["Scheduled"]) {
        assert!(told.contains(reason), "should tell {reason}: {told}");
    }
}

#[test]
fn a_budget_decides_who_may_be_evicted() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "budget");
    cluster.apply(&web(IMAGE, 2));
    cluster.kubectl(&[
        "create",
        "pdb",
        "web",
        "--selector=app=web",
        "--min-available=100%",
    ]);
    cluster.wait_value(&["pdb", "web"], "{.status.currentHealthy}", "2");
    let pods = cluster.kubectl(&["get", "pods", "-l", "app=web", "-o", "name"]);
    let pod = pods
        .lines()
        .next()
        .unwrap()
        .trim_start_matches("pod/")
        .to_owned();
    let file = lab.path("eviction.json");
    let body =
        format!(r#"{{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"{pod}"}}}}"#);
    std::fs::write(&file, body).unwrap();
    let path = format!("/api/v1/namespaces/default/pods/{pod}/eviction");
    let evict = ["create", "--raw", &path, "-f", &file.display().to_string()];
    let refused = cluster.try_kubectl(&evict).unwrap_err();
    assert!(
        refused.contains("Cannot evict pod as it would violate the pod's disruption budget."),
        "{refused}"
    );
    let drain = ["drain", "budget", "--ignore-daemonsets", "--timeout=12s"];
    let refused = cluster.try_kubectl(&drain).unwrap_err();
    assert!(
        refused.contains("would violate the pod's disruption budget"),
        "{refused}"
    );
    cluster.kubectl(&["uncordon", "budget"]);

    let less = r#"{"spec":{"minAvailable":"50%"}}"#;
    cluster.kubectl(&["patch", "pdb", "web", "-p", less]);
    cluster.wait_value(&["pdb", "web"], "{.status.disruptionsAllowed}", "1");
    let condition =
        |field: &str| format!("{{.status.conditions[?(@.type==\"DisruptionAllowed\")].{field}}}");
    cluster.wait_value(&["pdb", "web"], &condition("reason"), "SufficientPods");
    cluster.kubectl(&evict);
    wait("it is gone", || {
        cluster.try_kubectl(&["get", "pod", &pod]).err()
    });
    // Its successor makes room for the next.
    cluster.wait_value(&["deployment", "web"], "{.status.readyReplicas}", "2");
    cluster.wait_value(&["pdb", "web"], "{.status.disruptionsAllowed}", "1");
    cluster.wait_value(&["pdb", "web"], "{.status.disruptedPods}", "");
}
