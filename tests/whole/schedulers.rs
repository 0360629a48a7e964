//! Schedulers as processes of their own: profiles of a file, and of several one leads.

use crate::lab::{Cluster, Lab, wait};

const LEASE: [&str; 4] = ["-n", "kube-system", "lease", "kube-scheduler"];
const HOLDER: &str = "{.spec.holderIdentity}";
const NODE: &str = "{.spec.nodeName}";

/// Pods of `packing` go where most is given away, those of `default-scheduler` where least is.
const PROFILES: &str = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaseDuration: 4s, renewDeadline: 3s, retryPeriod: 1s}
profiles:
- schedulerName: default-scheduler
- schedulerName: packing
  plugins:
    score:
      disabled: [{name: '*'}]
      enabled: [{name: NodeResourcesFit}]
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated}
";

/// A node without a machine.
fn node(cluster: &Cluster, name: &str) {
    cluster.apply(&format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{place: {name}}}}}\n"
    ));
    let amounts = r#"{"cpu": "10", "memory": "10Gi", "pods": "9"}"#;
    let status = format!(r#"{{"status": {{"capacity": {amounts}, "allocatable": {amounts}}}}}"#);
    let patch = ["--subresource=status", "--patch", &status];
    cluster.kubectl(&[&["patch", "node", name][..], &patch].concat());
}

fn pod(cluster: &Cluster, name: &str, scheduler: &str, more: &str) {
    cluster.apply(&format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  schedulerName: {scheduler}
  tolerations: [{{operator: Exists}}]
  containers:
  - name: c
    image: none
    resources: {{requests: {{cpu: 2, memory: 2Gi}}}}
{more}"
    ));
}

#[test]
fn schedulers_follow_each_other_and_each_profile_has_its_pods() {
    let mut lab = Lab::new();
    let cluster = lab.server("chosen", &["--disable", "scheduler"]);
    node(&cluster, "one");
    node(&cluster, "two");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("scheduler.yaml");
    std::fs::write(&file, PROFILES).unwrap();
    let (file, kubeconfig) = (
        file.display().to_string(),
        cluster.kubeconfig().display().to_string(),
    );
    let arguments = ["scheduler", "--kubeconfig", &kubeconfig, "--config", &file];
    let first = lab.spawn(&cluster.host.clone(), &arguments);
    pod(
        &cluster,
        "pinned",
        "packing",
        "  nodeSelector: {place: two}\n",
    );
    cluster.wait_value(&["pod", "pinned"], NODE, "two");
    pod(&cluster, "packed", "packing", "");
    cluster.wait_value(&["pod", "packed"], NODE, "two");
    pod(&cluster, "spread", "default-scheduler", "");
    cluster.wait_value(&["pod", "spread"], NODE, "one");
    pod(&cluster, "foreign", "somebody-else", "");

    let holder = cluster.value(&LEASE, HOLDER);
    lab.spawn(&cluster.host.clone(), &arguments);
    assert!(lab.process(first).terminate().success());
    wait("the second leads", || {
        let now = cluster.value(&LEASE, HOLDER);
        (!now.is_empty() && now != holder).then_some(())
    });
    pod(&cluster, "later", "packing", "");
    cluster.wait_value(&["pod", "later"], NODE, "two");
    assert_eq!(cluster.value(&["pod", "foreign"], NODE), "");
}

#[test]
fn a_servers_own_scheduler_has_profiles_too() {
    let mut lab = Lab::new();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("scheduler.yaml");
    std::fs::write(&file, PROFILES).unwrap();
    let cluster = lab.server("own", &["--scheduler-config", &file.display().to_string()]);
    node(&cluster, "one");
    node(&cluster, "two");
    pod(
        &cluster,
        "pinned",
        "packing",
        "  nodeSelector: {place: two}\n",
    );
    cluster.wait_value(&["pod", "pinned"], NODE, "two");
    pod(&cluster, "packed", "packing", "");
    cluster.wait_value(&["pod", "packed"], NODE, "two");
}
