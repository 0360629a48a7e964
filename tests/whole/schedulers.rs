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
    let beside = [&arguments[..], &["--secure-port", "0"]].concat();
    lab.spawn(&cluster.host.clone(), &beside);
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

/// The status and the text that `curl` gets of a port of the cluster's own host.
fn get(cluster: &Cluster, port: u16, path: &str, token: &str) -> (String, String) {
    let url = format!("https://127.0.0.1:{port}{path}");
    let bearer = format!("Authorization: Bearer {token}");
    let mut curl = cluster.host.command("curl");
    curl.args(["-sk", "--max-time", "10", "-w", "\n%{http_code}", &url]);
    if !token.is_empty() {
        curl.args(["-H", &bearer]);
    }
    let output = String::from_utf8(curl.output().unwrap().stdout).unwrap();
    let (text, status) = output.rsplit_once('\n').unwrap();
    (status.to_owned(), text.to_owned())
}

/// Of the pod that waits for a scheduler that is not there.
const MEASURED: &str = concat!(
    "kube_pod_resource_request{namespace=\"default\",node=\"\",pod=\"measured\",priority=\"0\",",
    "resource=\"cpu\",scheduler=\"nobody\",unit=\"cores\"} 0.1\n",
);

#[test]
fn a_process_of_its_own_tells_on_a_port_how_it_is_to_who_may_know() {
    let mut lab = Lab::new();
    let cluster = lab.server("told", &["--disable", "scheduler,controllers"]);
    cluster.apply(
        "
{apiVersion: v1, kind: ServiceAccount, metadata: {name: scraper}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: stranger}}
---
apiVersion: v1
kind: Pod
metadata: {name: measured}
spec:
  schedulerName: nobody
  serviceAccountName: scraper
  containers: [{name: c, image: none, resources: {requests: {cpu: 100m}}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: scraper}
rules: [{nonResourceURLs: [/metrics, /metrics/*, /configz, /readyz/*], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: scraper}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: scraper}
subjects: [{kind: ServiceAccount, name: scraper, namespace: default}]
",
    );
    let kubeconfig = cluster.kubeconfig().display().to_string();
    let asked = [
        "--kubeconfig",
        &kubeconfig,
        "--authentication-kubeconfig",
        &kubeconfig,
        "--authorization-kubeconfig",
        &kubeconfig,
    ];
    let host = cluster.host.clone();
    let scheduler = lab.spawn(&host, &[&["scheduler"][..], &asked].concat());
    let controllers = lab.spawn(&host, &[&["controllers"][..], &asked].concat());
    let ok = |text: &str| ("200".to_owned(), text.to_owned());
    for (port, path) in [(10259, "/healthz"), (10259, "/livez"), (10257, "/healthz")] {
        wait("it is healthy", || {
            (get(&cluster, port, path, "") == ok("ok")).then_some(())
        });
    }
    let of = |account: &str| {
        cluster
            .kubectl(&["create", "token", account])
            .trim()
            .to_owned()
    };
    let (scraper, stranger) = (of("scraper"), of("stranger"));
    for port in [10259, 10257] {
        let told = get(&cluster, port, "/metrics", "");
        assert_eq!(told.0, "403");
        assert!(told.1.contains("system:anonymous"), "{}", told.1);
        assert_eq!(get(&cluster, port, "/metrics", &stranger).0, "403");
        assert_eq!(get(&cluster, port, "/metrics", "made-up").0, "401");
        let (status, text) = get(&cluster, port, "/metrics", &scraper);
        assert_eq!(status, "200");
        assert!(
            text.contains("leader_election_master_status{name=\"kube-"),
            "{text}"
        );
    }
    wait("it leads and has read everything", || {
        let (_, metrics) = get(&cluster, 10259, "/metrics", &scraper);
        let leads = "leader_election_master_status{name=\"kube-scheduler\"} 1";
        let waits = "scheduler_pending_pods{queue=\"active\"} 0";
        (metrics.contains(leads) && metrics.contains(waits)).then_some(())
    });
    assert_eq!(get(&cluster, 10259, "/readyz", ""), ok("ok"));
    let (_, configuration) = get(&cluster, 10259, "/configz", &scraper);
    assert!(configuration.contains("\"resourceName\":\"kube-scheduler\""));
    let (_, configuration) = get(&cluster, 10257, "/configz", &scraper);
    assert!(configuration.contains("\"resourceName\":\"kube-controller-manager\""));
    for port in [10257, 10259] {
        let (status, told) = get(&cluster, port, "/metrics/slis", &scraper);
        assert_eq!(status, "200");
        assert!(told.contains("kubernetes_healthcheck{"), "{told}");
    }
    let (_, asked) = get(&cluster, 10259, "/metrics/resources", &scraper);
    assert!(asked.contains(MEASURED), "{asked}");
    assert_eq!(
        get(&cluster, 10257, "/metrics/resources", &scraper).0,
        "404"
    );
    let check = get(&cluster, 10259, "/readyz/sched-handler-sync", &scraper);
    assert_eq!(check, ok("ok"));
    assert!(lab.process(scheduler).terminate().success());
    assert!(lab.process(controllers).terminate().success());
}
