//! Clients written for Kubernetes by others, in their own languages.

use crate::lab::{Cluster, Lab, all_text, run, wait};
use crate::workloads::{self, IMAGE};
use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/whole/foreign_clients");

/// Where tests/run installs the client; without it the machine's own is used.
#[allow(clippy::disallowed_methods)] // Tests are configured by the command that runs them.
fn packages() -> Option<String> {
    std::env::var("CORACLE_TEST_PYTHON_CLIENT").ok()
}

pub fn python(cluster: &Cluster, script: &str) -> Command {
    let mut python = cluster.host.command("python3");
    if let Some(packages) = packages() {
        python.env("PYTHONPATH", packages);
    }
    python.arg(format!("{SCRIPTS}/{script}"));
    python
}

#[test]
fn the_python_client_pages_watches_and_deletes() {
    let mut lab = Lab::new();
    let cluster = lab.server("python", &[]);
    let mut client = python(&cluster, "client.py");
    let output = client.arg(cluster.kubeconfig()).output().unwrap();
    assert!(output.status.success(), "{}", all_text(&output));
}

const ECHO_PORT: &str = "8181";

/// A pod, a Service and a node that all are this machine, where the script listens.
fn echoes(address: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Node
metadata: {{ name: far }}
---
apiVersion: v1
kind: Pod
metadata: {{ name: echo, labels: {{ app: echo }} }}
spec:
  nodeName: far
  containers: [{{ name: main, image: none, ports: [{{ containerPort: {ECHO_PORT} }}] }}]
---
apiVersion: v1
kind: Service
metadata: {{ name: echo }}
spec: {{ ports: [{{ name: web, port: 80, targetPort: {ECHO_PORT} }}] }}
---
apiVersion: v1
kind: Endpoints
metadata: {{ name: echo }}
subsets:
- addresses: [{{ ip: {address}, targetRef: {{ kind: Pod, name: echo, namespace: default }} }}]
  ports: [{{ name: web, port: {ECHO_PORT} }}]
"#
    )
}

#[test]
fn web_sockets_pass_through_pods_services_and_nodes() {
    let mut lab = Lab::new();
    let cluster = lab.server("sockets", &[]);
    let address = cluster.host.address.clone();
    let account = ["serviceaccount", "default"];
    cluster.wait_value(&account, "{.metadata.name}", "default");
    cluster.apply(&echoes(&address));
    let status = |what: &str, status: String| {
        let patch = format!("{{\"status\":{status}}}");
        cluster.kubectl(&[
            "patch",
            what,
            "--subresource=status",
            "--type=merge",
            "-p",
            &patch,
        ]);
    };
    let addresses =
        format!("{{\"addresses\":[{{\"type\":\"InternalIP\",\"address\":\"{address}\"}}]}}");
    status("node/far", addresses);
    status(
        "pod/echo",
        format!("{{\"podIPs\":[{{\"ip\":\"{address}\"}}],\"podIP\":\"{address}\"}}"),
    );
    let namespace = "/api/v1/namespaces/default";
    let mut script = python(&cluster, "web_sockets.py");
    script
        .arg(&cluster.kubectl)
        .arg(cluster.kubeconfig())
        .arg(ECHO_PORT);
    script.args([
        format!("{namespace}/pods/echo/proxy"),
        format!("{namespace}/pods/http:echo:{ECHO_PORT}/proxy"),
        format!("{namespace}/services/echo:web/proxy"),
        format!("{namespace}/services/echo:80/proxy"),
        format!("/api/v1/nodes/far:{ECHO_PORT}/proxy"),
    ]);
    let output = script.output().unwrap();
    assert!(output.status.success(), "{}", all_text(&output));
}

/// Rights as the Kubernetes documentation gives them to a second scheduler.
const SCHEDULER_RIGHTS: &str = r#"
apiVersion: v1
kind: ServiceAccount
metadata: { name: second-scheduler, namespace: kube-system }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: second-scheduler-as-kube-scheduler }
subjects: [{ kind: ServiceAccount, name: second-scheduler, namespace: kube-system }]
roleRef: { kind: ClusterRole, name: "system:kube-scheduler", apiGroup: rbac.authorization.k8s.io }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: second-scheduler-as-volume-scheduler }
subjects: [{ kind: ServiceAccount, name: second-scheduler, namespace: kube-system }]
roleRef: { kind: ClusterRole, name: "system:volume-scheduler", apiGroup: rbac.authorization.k8s.io }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: second-scheduler-authentication-reader, namespace: kube-system }
subjects: [{ kind: ServiceAccount, name: second-scheduler, namespace: kube-system }]
roleRef:
  kind: Role
  name: extension-apiserver-authentication-reader
  apiGroup: rbac.authorization.k8s.io
"#;

const SCHEDULED_PODS: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: { name: placed }
spec:
  replicas: 3
  selector: { matchLabels: { app: placed } }
  template:
    metadata: { labels: { app: placed } }
    spec:
      schedulerName: second-scheduler
      terminationGracePeriodSeconds: 1
      containers:
      - { name: one, image: "example.test/busybox:1", command: [sleep, "3600"] }
"#;

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The admin's kubeconfig with the token of a service account in place of the certificate.
fn kubeconfig_of(cluster: &Cluster, account: &str) -> std::path::PathBuf {
    let token = cluster.kubectl(&["-n", "kube-system", "create", "token", account]);
    let text = cluster.kubectl(&["config", "view", "--raw", "-o", "json"]);
    let mut config: serde_json::Value = serde_json::from_str(&text).unwrap();
    config["users"][0]["user"] = serde_json::json!({ "token": token });
    let path = cluster.host.data_dir.join(format!("{account}.kubeconfig"));
    std::fs::write(&path, config.to_string()).unwrap();
    path
}

fn the_second_scheduler_places_pods(cluster: &Cluster) {
    cluster.apply(SCHEDULED_PODS);
    cluster.rolled_out("deployment/placed");
    let events = wait("each placement is told", || {
        let events = cluster.kubectl(&[
            "get",
            "events",
            "--field-selector=reason=Scheduled,reportingComponent=second-scheduler",
            "-o",
            "jsonpath={range .items[*]}{.message}{'\\n'}{end}",
        ]);
        (events.lines().count() >= 3).then_some(events)
    });
    assert_eq!(events.lines().count(), 3, "{events}");
    for line in events.lines() {
        assert!(
            line.starts_with("Successfully assigned default/placed-"),
            "{events}"
        );
    }
}

#[test]
fn a_second_scheduler_with_a_service_accounts_token_places_its_pods() {
    let mut lab = Lab::new();
    let cluster = workloads::with_images(&mut lab, "second");
    assert!(SCHEDULED_PODS.contains(IMAGE));
    cluster.apply(SCHEDULER_RIGHTS);
    let kubeconfig = kubeconfig_of(&cluster, "second-scheduler");

    let log = std::fs::File::create(lab.path("scheduler.log")).unwrap();
    let mut scheduler = python(&cluster, "scheduler.py");
    scheduler.arg(&kubeconfig).stdout(Stdio::null()).stderr(log);
    let _running = Running(scheduler.spawn().unwrap());
    the_second_scheduler_places_pods(&cluster);

    // It holds what a scheduler needs, and no more.
    let kubeconfig = kubeconfig.display().to_string();
    let refused = cluster
        .try_kubectl(&["--kubeconfig", &kubeconfig, "get", "secrets", "-A"])
        .unwrap_err();
    assert!(
        refused.contains(
            "User \"system:serviceaccount:kube-system:second-scheduler\" cannot list resource \
             \"secrets\" in API group \"\" at the cluster scope"
        ),
        "{refused}"
    );
}

/// The same scheduler as a pod, with the machine's Python mounted into it: it finds its token, the
/// CA and the server by itself. Services are not routed to yet, so the server is the node's address.
fn scheduler_pod() -> serde_json::Value {
    let asked = "import sys; print(sys.executable, sys.prefix)";
    let answer = run("python3", &["-c", asked]);
    let (python, prefix) = answer.trim().split_once(' ').unwrap();
    let packages = packages().unwrap_or_default();
    let system = ["/usr", "/lib", "/lib64"];
    let own = [prefix, &packages, SCRIPTS];
    let own = own
        .into_iter()
        .filter(|path| !path.is_empty() && !system.iter().any(|top| path.starts_with(top)));
    let directories: BTreeSet<&str> = system.into_iter().chain(own).collect();
    let named = || directories.iter().enumerate();
    let volumes = named().map(|(number, path)| {
        serde_json::json!({ "name": format!("v{number}"), "hostPath": { "path": path } })
    });
    let mounts = named().map(|(number, path)| {
        serde_json::json!({ "name": format!("v{number}"), "mountPath": path, "readOnly": true })
    });
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "second-scheduler", "namespace": "kube-system" },
        "spec": {
            "serviceAccountName": "second-scheduler",
            "terminationGracePeriodSeconds": 0,
            "volumes": volumes.collect::<Vec<_>>(),
            "containers": [{
                "name": "scheduler",
                "image": IMAGE,
                "command": [python, format!("{SCRIPTS}/scheduler.py")],
                "env": [
                    { "name": "PYTHONPATH", "value": packages },
                    {
                        "name": "KUBERNETES_SERVICE_HOST",
                        "valueFrom": { "fieldRef": { "fieldPath": "status.hostIP" } },
                    },
                    { "name": "KUBERNETES_SERVICE_PORT", "value": "6443" },
                ],
                "volumeMounts": mounts.collect::<Vec<_>>(),
            }],
        },
    })
}

#[test]
fn a_second_scheduler_in_a_pod_places_its_pods() {
    let mut lab = Lab::new();
    let cluster = workloads::with_images(&mut lab, "within");
    cluster.apply(SCHEDULER_RIGHTS);
    cluster.apply(&scheduler_pod().to_string());
    let pod = ["-n", "kube-system", "pod", "second-scheduler"];
    cluster.wait_value(&pod, "{.status.phase}", "Running");
    the_second_scheduler_places_pods(&cluster);
}
