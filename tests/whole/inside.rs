//! A client in a pod: it finds its token, its CA and its namespace, and is who its account is.

use crate::lab::{Lab, run};
use crate::workloads::{IMAGE, with_images};
use std::path::Path;

/// The directory of the kubectl that is used outside, to be mounted into a pod.
fn tools(kubectl: &str) -> (String, String) {
    let path = run(
        "sh",
        &["-c", &format!("readlink -f $(command -v {kubectl})")],
    );
    let path = Path::new(path.trim());
    let text = |part: Option<&std::ffi::OsStr>| part.unwrap().to_str().unwrap().to_owned();
    (
        text(path.parent().map(Path::as_os_str)),
        text(path.file_name()),
    )
}

/// One with kubectl in it, and one that does without a token. Services are not routed to yet: the
/// server is reached at the node's address.
fn pods(directory: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: client }}
spec:
  serviceAccountName: robot
  terminationGracePeriodSeconds: 1
  volumes: [{{ name: tools, hostPath: {{ path: "{directory}" }} }}]
  containers:
  - name: main
    image: {IMAGE}
    command: ["sh", "-c", "trap 'exit 0' TERM; while true; do sleep 1; done"]
    env:
    - {{ name: KUBERNETES_SERVICE_HOST, valueFrom: {{ fieldRef: {{ fieldPath: status.hostIP }} }} }}
    - {{ name: KUBERNETES_SERVICE_PORT, value: "6443" }}
    volumeMounts: [{{ name: tools, mountPath: /tools }}]
---
apiVersion: v1
kind: Pod
metadata: {{ name: without }}
spec:
  automountServiceAccountToken: false
  restartPolicy: Never
  containers:
  - name: main
    image: {IMAGE}
    command: ["sh", "-c", "test ! -e /var/run/secrets/kubernetes.io"]
"#
    )
}

#[test]
fn a_client_in_a_pod_asks_the_api_as_its_account() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "inside");
    let (directory, kubectl) = tools(&cluster.kubectl);
    cluster.kubectl(&["create", "serviceaccount", "robot"]);
    cluster.kubectl(&[
        "create",
        "role",
        "reader",
        "--verb=get,list",
        "--resource=pods",
    ]);
    cluster.kubectl(&[
        "create",
        "rolebinding",
        "reader",
        "--role=reader",
        "--serviceaccount=default:robot",
    ]);
    cluster.apply(&pods(&directory));
    cluster.wait_value(&["pod", "client"], "{.status.phase}", "Running");
    let inside = |arguments: &[&str]| {
        let mut all = vec!["exec", "client", "--"];
        all.extend(arguments);
        cluster.try_kubectl(&all)
    };
    let tool = format!("/tools/{kubectl}");
    let ask = |arguments: &[&str]| {
        let mut all = vec![tool.as_str()];
        all.extend(arguments);
        inside(&all)
    };
    assert_eq!(
        ask(&["get", "pod", "client", "-o", "name"]).unwrap(),
        "pod/client\n"
    );
    let who = "jsonpath={.status.userInfo.username} {.status.userInfo.extra}";
    let who = ask(&["auth", "whoami", "-o", who]).unwrap();
    assert!(
        who.starts_with("system:serviceaccount:default:robot "),
        "{who}"
    );
    assert!(
        who.contains(r#""authentication.kubernetes.io/pod-name":["client"]"#),
        "{who}"
    );
    let refused = ask(&["get", "secrets"]).unwrap_err();
    assert!(refused.contains("Forbidden"), "{refused}");

    let directory = "/var/run/secrets/kubernetes.io/serviceaccount";
    let script = format!("cd {directory} && cat namespace && readlink token && ls");
    let shown = inside(&["sh", "-c", &script]).unwrap();
    assert_eq!(shown, "default..data/token\nca.crt\nnamespace\ntoken\n");
    let script = format!("echo x > {directory}/token");
    assert!(
        inside(&["sh", "-c", &script]).is_err(),
        "nobody writes there"
    );
    cluster.wait_value(&["pod", "without"], "{.status.phase}", "Succeeded");
}
