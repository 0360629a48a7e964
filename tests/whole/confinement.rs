//! What pods may not do, and what they are told when a node cannot confine them as they ask.

use crate::lab::{Cluster, Lab, wait};
use crate::workloads::{IMAGE, with_images};

/// One container with a line of shell, then the rest of its fields and those of the pod.
fn pod(name: &str, line: &str, of_container: &str, of_pod: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: {name} }}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: {IMAGE}
    command: ["sh", "-c", "{line}"]
{of_container}
{of_pod}
"#
    )
}

fn waiting(cluster: &Cluster, name: &str, reason: &str) -> String {
    let state = "{.status.containerStatuses[0].state.waiting";
    cluster.wait_value(&["pod", name], &format!("{state}.reason}}"), reason);
    cluster.value(&["pod", name], &format!("{state}.message}}"))
}

fn log_of(cluster: &Cluster, name: &str) -> String {
    cluster.wait_value(&["pod", name], "{.status.phase}", "Succeeded");
    cluster.kubectl(&["logs", name])
}

fn told(cluster: &Cluster, name: &str, part: &str) {
    wait("the event tells", || {
        cluster.events(name).contains(part).then_some(())
    });
}

#[test]
fn pods_are_confined_as_they_ask_or_told_why_not() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "walls");
    let profile = |type_: &str| format!("  securityContext: {{ seccompProfile: {{ {type_} }} }}");
    let attempt = "busybox unshare -U true && echo free || echo held; exit 0";
    cluster.apply(&pod("held", attempt, "", &profile("type: RuntimeDefault")));
    cluster.apply(&pod("free", attempt, "", &profile("type: Unconfined")));
    let missing = profile("type: Localhost, localhostProfile: none.json");
    cluster.apply(&pod("missing", "true", "", &missing));
    let sysctl = "  securityContext: { sysctls: [{ name: kernel.msgmax, value: '1' }] }";
    cluster.apply(&pod("sysctl", "true", "", sysctl));
    let non_root = "    securityContext: { runAsNonRoot: true }";
    cluster.apply(&pod("root", "true", non_root, ""));
    let inside = "cat /proc/self/uid_map";
    cluster.apply(&pod("users", inside, "", "  hostUsers: false"));
    let groups = "  securityContext: { runAsUser: 7, supplementalGroups: [9], \
                  supplementalGroupsPolicy: Strict }";
    cluster.apply(&pod("groups", "id -G", "", groups));

    assert!(log_of(&cluster, "held").contains("held"));
    assert!(log_of(&cluster, "free").contains("free"));
    let message = waiting(&cluster, "missing", "CreateContainerError");
    let path = cluster.host.data_dir.join("agent/seccomp/none.json");
    let path = path.display();
    assert_eq!(
        message,
        format!("cannot load seccomp profile \"{path}\": open {path}: no such file or directory")
    );
    cluster.wait_value(&["pod", "sysctl"], "{.status.reason}", "SysctlForbidden");
    let message = cluster.value(&["pod", "sysctl"], "{.status.message} {.status.phase}");
    assert_eq!(
        message,
        "Pod was rejected: forbidden sysctl: \"kernel.msgmax\" not allowlisted Failed"
    );
    told(&cluster, "sysctl", "SysctlForbidden");
    let message = waiting(&cluster, "root", "CreateContainerConfigError");
    assert!(
        message.starts_with(
            "container has runAsNonRoot and image will run as root (pod: \"root_default("
        ),
        "{message}"
    );
    assert_eq!(log_of(&cluster, "groups"), "0 9\n");
    let user = "{.status.containerStatuses[0].user.linux}";
    let user = cluster.value(&["pod", "groups"], user);
    assert_eq!(user, r#"{"gid":0,"supplementalGroups":[0,9],"uid":7}"#);

    let handlers = "{.status.runtimeHandlers[0].features.userNamespaces}";
    let has_users = cluster.value(&["node", "walls"], handlers);
    if has_users == "true" {
        let map = log_of(&cluster, "users");
        let words: Vec<&str> = map.split_whitespace().collect();
        assert_eq!((words[0], words[2]), ("0", "65536"), "{map}");
        assert!(words[1].parse::<u32>().unwrap() >= 65_536, "{map}");
    } else {
        told(
            &cluster,
            "users",
            "runtime does not support user namespaces",
        );
    }
}

#[test]
fn a_runtime_class_names_this_runtime_or_its_pods_wait() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "classes");
    for (name, handler) in [("own", "coracle"), ("other", "gvisor")] {
        cluster.apply(&format!(
            "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {{ name: {name} }}\n\
             handler: {handler}\noverhead: {{ podFixed: {{ cpu: 250m, memory: 16Mi }} }}\n"
        ));
        let class = format!("  runtimeClassName: {name}");
        cluster.apply(&pod(name, "echo ran", "", &class));
    }
    assert_eq!(log_of(&cluster, "own"), "ran\n");
    assert_eq!(
        cluster.value(&["pod", "own"], "{.spec.overhead.cpu}"),
        "250m"
    );
    told(&cluster, "other", "no runtime for \"gvisor\" is configured");
    assert_eq!(
        cluster.value(&["pod", "other"], "{.status.phase}"),
        "Pending"
    );
}
