//! Clients written for Kubernetes by others, in their own languages.

use crate::lab::{Lab, all_text};

const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/whole/foreign_clients/client.py"
);

#[test]
#[allow(clippy::disallowed_methods)] // Tests are configured by the command that runs them.
fn the_python_client_pages_watches_and_deletes() {
    let mut lab = Lab::new();
    let cluster = lab.server("python", &[]);
    let mut python = cluster.host.command("python3");
    // Where tests/run installs the client; without it the machine's own is used.
    if let Some(packages) = std::env::var_os("CORACLE_TEST_PYTHON_CLIENT") {
        python.env("PYTHONPATH", packages);
    }
    let output = python.arg(SCRIPT).arg(cluster.kubeconfig()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", all_text(&output));
}

const WEB_SOCKETS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/whole/foreign_clients/web_sockets.py"
);
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
    let mut script = cluster.host.command("python3");
    script
        .arg(WEB_SOCKETS)
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
