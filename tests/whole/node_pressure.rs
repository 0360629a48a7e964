//! A node that runs short: who is refused, who is evicted, and with which words.

use crate::lab::{Cluster, Lab, run, wait};
use crate::pictures;
use crate::workloads::IMAGE;
use std::path::PathBuf;

const FOREVER: &str = "while true; do sleep 1; done";

fn pod(name: &str, script: &str, spec: &str, container: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: {name} }}
spec:
  terminationGracePeriodSeconds: 1
  {spec}
  containers:
  - name: main
    image: {IMAGE}
    command: ["sh", "-c", "{script}"]
    {container}
"#
    )
}

/// A small disk for one node; taken away after the lab, which still needs it.
#[derive(Default)]
pub struct SmallDisk(Option<PathBuf>);

impl SmallDisk {
    pub fn mount(&mut self, path: PathBuf, size: &str) {
        std::fs::create_dir(&path).unwrap();
        let size = format!("size={size},mode=700");
        let target = path.display().to_string();
        run("mount", &["-t", "tmpfs", "-o", &size, "small", &target]);
        self.0 = Some(path);
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            run("umount", &["-l", &path.display().to_string()]);
            let _ = std::fs::remove_dir_all(path.parent().unwrap());
        }
    }
}

fn wait_failed(cluster: &Cluster, name: &str, reason: &str) -> String {
    let target = ["pod", name];
    cluster.wait_value(
        &target,
        "{.status.phase} {.status.reason}",
        &format!("Failed {reason}"),
    );
    cluster.value(&target, "{.status.message}")
}

fn has_event(cluster: &Cluster, reason: &str, object: &str) -> bool {
    let field = format!("reason={reason},involvedObject.name={object}");
    let found = cluster.value(
        &["events", "-A", "--field-selector", &field],
        "{.items[*].reason}",
    );
    found.contains(reason)
}

#[test]
fn a_full_disk_evicts_who_fills_it_and_the_node_recovers() {
    let mut disk = SmallDisk::default();
    let mut lab = Lab::new();
    disk.mount(lab.path("small"), "256m");
    let settings = [
        "--eviction-hard=nodefs.available<100Mi",
        "--eviction-pressure-transition-period=5s",
    ];
    let cluster = lab.cluster("small", &settings);
    cluster.import(&pictures::busybox(&lab.path(""), IMAGE));
    cluster.apply(&pod("modest", FOREVER, "", ""));
    cluster.wait_value(&["pod", "modest"], "{.status.phase}", "Running");
    let fill = format!("dd if=/dev/zero of=/data/fill bs=1M count=190; {FOREVER}");
    let volume = "volumes: [{ name: data, emptyDir: {} }]";
    let mount = "volumeMounts: [{ name: data, mountPath: /data }]";
    cluster.apply(&pod("hog", &fill, volume, mount));

    let message = wait_failed(&cluster, "hog", "Evicted");
    let begin = "The node was low on resource: ephemeral-storage. Threshold quantity: 100Mi, \
                 available: ";
    assert!(message.starts_with(begin), "{message}");
    let path = "{.status.conditions[?(@.type==\"DisruptionTarget\")].reason}";
    let target = ["pod", "hog"];
    assert_eq!(cluster.value(&target, path), "TerminationByKubelet");
    wait("events tell of it", || {
        let told = has_event(&cluster, "Evicted", "hog")
            && has_event(&cluster, "EvictionThresholdMet", "small")
            && has_event(&cluster, "NodeHasDiskPressure", "small");
        told.then_some(())
    });
    // What it wrote is gone with it: the pressure ends, and with it the taint.
    let node = ["node", "small"];
    let path = "{.status.conditions[?(@.type==\"DiskPressure\")].status}";
    cluster.wait_value(&node, path, "False");
    wait("the taint goes", || {
        let taints = cluster.value(&node, "{.spec.taints[*].key}");
        (!taints.contains("disk-pressure")).then_some(())
    });
    let running = cluster.value(&["pod", "modest"], "{.status.phase}");
    assert_eq!(running, "Running", "who used little was left alone");
    cluster.apply(&pod("after", FOREVER, "", ""));
    cluster.wait_value(&["pod", "after"], "{.status.phase}", "Running");
}

#[test]
fn what_is_beyond_a_limit_of_disk_is_evicted() {
    let mut lab = Lab::new();
    let cluster = lab.cluster("limits", &[]);
    cluster.import(&pictures::busybox(&lab.path(""), IMAGE));
    let volume = "volumes: [{ name: x, emptyDir: { sizeLimit: 5Mi } }]";
    let mount = "volumeMounts: [{ name: x, mountPath: /data }]";
    let fill =
        |count: u32, to: &str| format!("dd if=/dev/zero of={to} bs=1M count={count}; {FOREVER}");
    cluster.apply(&pod("over", &fill(8, "/data/fill"), volume, mount));
    cluster.apply(&pod("within", &fill(3, "/data/fill"), volume, mount));
    let limit = "resources: { limits: { ephemeral-storage: 4Mi } }";
    cluster.apply(&pod("layer", &fill(8, "/fill"), "", limit));
    let message = wait_failed(&cluster, "over", "Evicted");
    assert_eq!(
        message,
        "Usage of EmptyDir volume \"x\" exceeds the limit \"5Mi\". "
    );
    let message = wait_failed(&cluster, "layer", "Evicted");
    assert_eq!(
        message,
        "Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. "
    );
    cluster.wait_value(&["pod", "within"], "{.status.phase}", "Running");
}

#[test]
fn who_does_not_fit_is_refused_and_who_is_critical_gets_place() {
    let mut lab = Lab::new();
    let cluster = lab.cluster("door", &["--system-reserved=cpu=500m,memory=64Mi"]);
    cluster.import(&pictures::busybox(&lab.path(""), IMAGE));
    let bound = "nodeName: door";
    let much = "resources: { requests: { cpu: \"1000\" } }";
    cluster.apply(&pod("much", FOREVER, bound, much));
    let message = wait_failed(&cluster, "much", "OutOfcpu");
    let begin = "Pod was rejected: Node didn't have enough resource: cpu, requested: 1000000, \
                 used: ";
    assert!(message.starts_with(begin), "{message}");
    let elsewhere = "nodeName: door\n  nodeSelector: { site: elsewhere }";
    cluster.apply(&pod("elsewhere", FOREVER, elsewhere, ""));
    let message = wait_failed(&cluster, "elsewhere", "NodeAffinity");
    assert_eq!(
        message,
        "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node \
         affinity/selector"
    );
    wait("an event tells of it", || {
        has_event(&cluster, "OutOfcpu", "much").then_some(())
    });

    let node = ["node", "door"];
    let milli = |path: &str| -> u32 {
        let text = cluster.value(&node, path);
        match text.strip_suffix('m') {
            Some(milli) => milli.parse().unwrap(),
            None => text.parse::<u32>().unwrap() * 1000,
        }
    };
    let allocatable = milli("{.status.allocatable.cpu}");
    assert_eq!(milli("{.status.capacity.cpu}") - allocatable, 500);
    let most = format!(
        "resources: {{ requests: {{ cpu: {}m }} }}",
        allocatable * 6 / 10
    );
    cluster.apply(&pod("lesser", FOREVER, bound, &most));
    cluster.wait_value(&["pod", "lesser"], "{.status.phase}", "Running");
    let critical = "nodeName: door\n  priorityClassName: system-node-critical";
    let critical = pod("critical", FOREVER, critical, &most).replacen(
        "name: critical }",
        "name: critical, namespace: kube-system }",
        1,
    );
    cluster.apply(&critical);
    let message = wait_failed(&cluster, "lesser", "Preempting");
    assert_eq!(message, "Preempted in order to admit critical pod");
    let target = ["pod", "critical", "-n", "kube-system"];
    cluster.wait_value(&target, "{.status.phase}", "Running");
}
