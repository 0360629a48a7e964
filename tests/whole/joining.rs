//! A node in a cluster whose API server dials its nodes: by a kubeconfig, with the kubelet's port.
//! The API server is ours, which is used as any other would be.

use crate::foreign_clients::python;
use crate::lab::{Cluster, Host, Lab, all_text, coracle, import, wait};
use crate::pictures;
use crate::workloads::IMAGE;
use serde_json::{Value, json};
use std::path::PathBuf;

const PORT: &str = "10350";

const WEB: &str = r#"
apiVersion: v1
kind: Pod
metadata: { name: web }
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: "example.test/busybox:1"
    command: ["sh", "-c", "mkdir /www && echo here it is > /www/page && echo started && exec httpd -f -p 8080 -h /www"]
"#;

const SCRAPER: &str = r#"
apiVersion: v1
kind: ServiceAccount
metadata: { name: scraper }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: scraper }
rules: [{ apiGroups: [""], resources: [nodes/metrics], verbs: [get] }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: scraper }
subjects: [{ kind: ServiceAccount, name: scraper, namespace: default }]
roleRef: { kind: ClusterRole, name: scraper, apiGroup: rbac.authorization.k8s.io }
"#;

fn admin(cluster: &Cluster) -> Value {
    let text = cluster.kubectl(&["config", "view", "--raw", "-o", "json"]);
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["clusters"][0]["cluster"]["server"] =
        json!(format!("https://{}:6443", cluster.host.address));
    config
}

fn write(lab: &Lab, name: &str, config: &Value) -> String {
    let path = lab.path(name);
    std::fs::write(&path, config.to_string()).unwrap();
    path.display().to_string()
}

/// A kubeconfig that may ask for certificates of nodes and for nothing else.
fn bootstrap(lab: &Lab, cluster: &Cluster) -> String {
    let mut command = cluster.host.command(coracle());
    command.args(["token", "create", "--data-dir"]);
    let output = command.arg(&cluster.host.data_dir).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let token = text.trim().splitn(3, '.').nth(2).unwrap();
    let mut config = admin(cluster);
    config["users"][0]["user"] = json!({ "token": token });
    write(lab, "bootstrap.kubeconfig", &config)
}

struct Edge {
    host: Host,
    arguments: Vec<String>,
    process: usize,
}

/// Starts an agent on a host of its own, waited for until its node is Ready.
fn join(lab: &mut Lab, cluster: &Cluster, more: &[&str]) -> Edge {
    let host = lab.host("edge");
    import(&host, &pictures::busybox(&lab.path(""), IMAGE));
    let data_dir = host.data_dir.display().to_string();
    let own = [
        "agent",
        "--data-dir",
        &data_dir,
        "--node-name",
        "edge",
        "--kubelet-port",
        PORT,
    ];
    let arguments: Vec<String> = own
        .iter()
        .chain(more)
        .map(|one| (*one).to_owned())
        .collect();
    let mut edge = Edge {
        host,
        arguments,
        process: 0,
    };
    start(lab, &mut edge);
    cluster.wait_value(
        &["node", "edge"],
        "{.status.conditions[?(@.type==\"Ready\")].status}",
        "True",
    );
    edge
}

fn start(lab: &mut Lab, edge: &mut Edge) {
    let arguments: Vec<&str> = edge.arguments.iter().map(String::as_str).collect();
    edge.process = lab.spawn(&edge.host.clone(), &arguments);
}

fn authority(cluster: &Cluster) -> PathBuf {
    cluster.host.data_dir.join("server/pki/ca.crt")
}

/// All that the node has, and how it was made: one that is replaced stays for a while.
fn instances(edge: &Edge) -> Vec<String> {
    let containers = edge.host.data_dir.join("agent/containers");
    let names = std::fs::read_dir(containers).unwrap();
    let mut names: Vec<_> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_node_joins_by_a_bootstrap_kubeconfig_and_is_dialled() {
    let mut lab = Lab::new();
    let cluster = lab.server("center", &[]);
    let bootstrap = bootstrap(&lab, &cluster);
    let authority = authority(&cluster).display().to_string();
    let more = [
        "--bootstrap-kubeconfig",
        &bootstrap,
        "--client-ca-file",
        &authority,
    ];
    let mut edge = join(&mut lab, &cluster, &more);
    let port = "{.status.daemonEndpoints.kubeletEndpoint.Port}";
    assert_eq!(cluster.value(&["node", "edge"], port), PORT);

    cluster.apply(WEB);
    cluster.apply(SCRAPER);
    cluster.wait_value(&["pod", "web"], "{.status.phase}", "Running");
    let token = cluster.kubectl(&["create", "token", "scraper"]);
    let admin = write(&lab, "admin.json", &admin(&cluster));
    let mut script = python(&cluster, "kubelet_port.py");
    script.args([&admin, token.trim(), &edge.host.address, PORT]);
    let output = script.output().unwrap();
    assert!(output.status.success(), "{}", all_text(&output));

    // The token has done its part. The node comes back by its own certificate, and the pod ran on.
    let before = instances(&edge);
    assert_eq!(before.len(), 1);
    lab.process(edge.process).terminate();
    cluster.kubectl(&[
        "-n",
        "kube-system",
        "delete",
        "secrets",
        "--field-selector=type=bootstrap.kubernetes.io/token",
    ]);
    let renewed = || {
        cluster.value(
            &["-n", "kube-node-lease", "lease", "edge"],
            "{.spec.renewTime}",
        )
    };
    let last = renewed();
    start(&mut lab, &mut edge);
    wait("the lease is renewed again", || {
        (renewed() != last).then_some(())
    });
    assert_eq!(instances(&edge), before);
}

#[test]
fn a_node_begins_as_the_admin_and_becomes_itself() {
    let mut lab = Lab::new();
    let cluster = lab.server("core", &[]);
    let admin = write(&lab, "admin.json", &admin(&cluster));
    let edge = join(&mut lab, &cluster, &["--kubeconfig", &admin]);
    let kept = edge.host.data_dir.join("agent/pki-joined/client.pem");
    wait("the node has its own certificate", || {
        kept.exists().then_some(())
    });
    // The API server told the node of its clients' authority.
    let ask = format!("https://{}:{PORT}/healthz", edge.host.address);
    let config: Value = serde_json::from_str(&std::fs::read_to_string(&admin).unwrap()).unwrap();
    let user = &config["users"][0]["user"];
    let file = |name: &str, field: &str| {
        let data = user[field].as_str().unwrap();
        let path = lab.path(name);
        let decoded = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, data).unwrap();
        std::fs::write(&path, decoded).unwrap();
        path.display().to_string()
    };
    let (certificate, key) = (
        file("admin.crt", "client-certificate-data"),
        file("admin.key", "client-key-data"),
    );
    wait("the admin is let in", || {
        let mut curl = cluster.host.command("curl");
        curl.args(["-sk", "--cert", &certificate, "--key", &key, &ask]);
        let output = curl.output().unwrap();
        (output.stdout == b"ok").then_some(())
    });
}

#[test]
fn a_kubeconfig_that_is_refused_is_told_of() {
    let mut lab = Lab::new();
    let cluster = lab.server("strict", &[]);
    let mut config = admin(&cluster);
    config["users"][0]["user"] = json!({ "token": "abcdef.0123456789abcdef" });
    let file = write(&lab, "bootstrap.kubeconfig", &config);
    let host = lab.host("edge");
    let ended = |flag: &str, file: &str| {
        let mut command = host.command(coracle());
        command.args(["agent", "--node-name", "edge", flag, file, "--data-dir"]);
        let output = command.arg(&host.data_dir).output().unwrap();
        assert!(!output.status.success());
        all_text(&output)
    };
    let text = ended("--bootstrap-kubeconfig", &file);
    let told = "a bootstrap token of that cluster is needed";
    assert!(text.contains(&file) && text.contains(told), "{text}");
    let text = ended("--kubeconfig", "/no/such/file");
    assert!(
        text.contains("the kubeconfig /no/such/file cannot be used"),
        "{text}"
    );
}
