//! What `kubectl top` shows of a real node and real pods, and to whom.

use crate::lab::{Cluster, Lab, wait};
use crate::workloads::{IMAGE, with_images};

/// One container that burns what it is allowed to, and one that sleeps.
fn burning() -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: burning, labels: {{ app: burning }} }}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: fire
    image: {IMAGE}
    command: ["sh", "-c", "while true; do :; done"]
    resources: {{ limits: {{ cpu: 100m, memory: 32Mi }} }}
  - name: ash
    image: {IMAGE}
    command: ["sleep", "100000"]
"#
    )
}

/// The number in front of a unit.
#[track_caller]
fn number(cell: &str, unit: &str) -> u64 {
    let digits = cell.strip_suffix(unit);
    let number = digits.and_then(|digits| digits.parse().ok());
    number.unwrap_or_else(|| panic!("{cell:?} is no number of {unit:?}"))
}

/// The rows of `kubectl top`, once there are as many.
fn top(cluster: &Cluster, arguments: &[&str], count: usize) -> Vec<Vec<String>> {
    wait(&format!("top {arguments:?} shows {count}"), || {
        let all = [&["top"], arguments, &["--no-headers"]].concat();
        let text = cluster.try_kubectl(&all).ok()?;
        let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        let rows: Vec<Vec<String>> = text.lines().map(cells).collect();
        (rows.len() == count).then_some(rows)
    })
}

#[test]
fn top_shows_what_nodes_pods_and_containers_use() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "measured");
    cluster.apply(&burning());
    let ready = [
        "wait",
        "--for=condition=Ready",
        "pod/burning",
        "--timeout=100s",
    ];
    cluster.kubectl(&ready);

    let nodes = top(&cluster, &["node"], 1);
    assert_eq!(nodes[0][0], "measured");
    assert!(number(&nodes[0][1], "m") > 0, "{nodes:?}");
    assert!(number(&nodes[0][3], "Mi") > 0, "{nodes:?}");
    assert!(number(&nodes[0][4], "%") <= 100, "{nodes:?}");

    // Two counts may be so near to each other that a busy machine let nothing burn between.
    let fire = wait("a tenth of a core is burnt, and nothing beside it", || {
        let containers = top(&cluster, &["pod", "burning", "--containers"], 2);
        let of = |name: &str| containers.iter().find(|row| row[1] == name).cloned();
        let (fire, ash) = (of("fire")?, of("ash")?);
        let burnt = number(&fire[2], "m");
        assert!(burnt <= 400, "a tenth of a core: {fire:?}");
        (number(&ash[2], "m") < burnt).then_some(fire)
    });
    assert!(number(&fire[3], "Mi") <= 32, "{fire:?}");

    let pods = top(&cluster, &["pod", "-A", "-l", "app=burning"], 1);
    assert_eq!(pods[0][..2], ["default", "burning"]);
    let none = cluster.kubectl(&["get", "pods.metrics.k8s.io", "-l", "app=other"]);
    assert!(!none.contains("burning"), "{none}");
    let table = cluster.kubectl(&["get", "pods.metrics.k8s.io", "burning"]);
    assert!(table.starts_with("NAME"), "{table}");
    for column in ["CPU", "MEMORY", "WINDOW"] {
        assert!(table.contains(column), "{table}");
    }
    seen_by_whom_it_was_given(&cluster);
}

fn seen_by_whom_it_was_given(cluster: &Cluster) {
    let as_jane = ["top", "pod", "--as=jane"];
    let refused = cluster.try_kubectl(&as_jane).unwrap_err();
    assert!(
        refused.contains("pods.metrics.k8s.io is forbidden"),
        "{refused}"
    );
    cluster.kubectl(&[
        "create",
        "rolebinding",
        "jane",
        "--clusterrole=view",
        "--user=jane",
    ]);
    wait("a viewer sees what pods use", || {
        let shown = cluster.try_kubectl(&as_jane).ok()?;
        shown.contains("burning").then_some(())
    });
}

#[test]
fn left_out_it_is_told_so() {
    let mut lab = Lab::new();
    let cluster = lab.server("unmeasured", &["--disable", "metrics"]);
    let told = cluster.try_kubectl(&["top", "node"]).unwrap_err();
    assert!(told.contains("Metrics API not available"), "{told}");
    let gone = ["get", "apiservice", "v1beta1.metrics.k8s.io"];
    wait("nothing says that it is served", || {
        let told = cluster.try_kubectl(&gone).err()?;
        told.contains("NotFound").then_some(())
    });
}
