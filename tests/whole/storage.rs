//! Volumes that are made of the nodes' own disks, by the class that claims get when they name none.

use crate::claims::is_bound;
use crate::faults::{start_agent, token};
use crate::lab::{Cluster, Lab, import, wait};
use crate::pictures;
use crate::workloads::{IMAGE, with_images};
use std::fs;
use std::path::{Path, PathBuf};

const CLAIM: &str = "
spec:
  accessModes: [ReadWriteOnce]
  resources: { requests: { storage: 1Gi } }";

fn claim(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{ name: {name} }}{CLAIM}\n---\n"
    )
}

/// Each start leaves a line in its volume.
fn pod(name: &str, volume: &str, more: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: {name} }}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: {{ runAsUser: 1000 }}
  {more}
  volumes: [{{ name: data, {volume} }}]
  containers:
  - name: main
    image: {IMAGE}
    command: [sh, -c, "echo $HOSTNAME >> /data/log && exec sleep 100000"]
    volumeMounts: [{{ name: data, mountPath: /data }}]
"#
    )
}

fn set() -> String {
    let template = CLAIM.replace('\n', "\n    ");
    format!(
        r#"
apiVersion: apps/v1
kind: StatefulSet
metadata: {{ name: web }}
spec:
  serviceName: web
  selector: {{ matchLabels: {{ app: web }} }}
  volumeClaimTemplates:
  - metadata: {{ name: data }}{template}
  template:
    metadata: {{ labels: {{ app: web }} }}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: web
        image: {IMAGE}
        command: [sh, -c, "echo $HOSTNAME >> /data/log && exec sleep 100000"]
        volumeMounts: [{{ name: data, mountPath: /data }}]
"#
    )
}

/// Name of the claim's volume, and its directory.
fn volume_of(cluster: &Cluster, claim: &str, data_dir: &Path) -> (String, PathBuf) {
    is_bound(cluster, claim);
    let name = cluster.value(&["pvc", claim], "{.spec.volumeName}");
    let directory = data_dir.join("local-path").join(&name);
    (name, directory)
}

fn has_lines(directory: &Path, count: usize) {
    wait("each start left a line", || {
        let log = fs::read_to_string(directory.join("log")).ok()?;
        (log.lines().count() == count).then_some(())
    });
}

#[test]
fn a_claim_has_a_directory_that_outlives_pods_and_goes_with_the_claim() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "storage");
    let data_dir = cluster.host.data_dir.clone();
    wait("there is a default class", || {
        let classes = cluster.kubectl(&["get", "storageclass"]);
        classes.contains("local-path (default)").then_some(())
    });
    cluster.apply(&set());
    cluster.rolled_out("statefulset/web");
    let (volume, directory) = volume_of(&cluster, "data-web-0", &data_dir);
    has_lines(&directory, 1);
    cluster.kubectl(&["delete", "pod", "web-0"]);
    has_lines(&directory, 2);
    cluster.kubectl(&["delete", "statefulset", "web"]);
    cluster.wait_gone(&["pod", "web-0"]);
    has_lines(&directory, 2);
    cluster.kubectl(&["delete", "pvc", "data-web-0"]);
    cluster.wait_gone(&["pv", &volume]);
    assert!(!directory.exists());

    // A pod's own claim goes with the pod.
    let template = CLAIM
        .replace('\n', " ")
        .replace("accessModes", "{ accessModes");
    let template = template.replace("ReadWriteOnce]", "ReadWriteOnce],") + " }";
    let own = format!("ephemeral: {{ volumeClaimTemplate: {{ {template} }} }}");
    cluster.apply(&pod("brief", &own, ""));
    let (volume, directory) = volume_of(&cluster, "brief-data", &data_dir);
    has_lines(&directory, 1);
    cluster.kubectl(&["delete", "pod", "brief"]);
    cluster.wait_gone(&["pv", &volume]);
    assert!(!directory.exists());
}

#[test]
fn what_is_retained_stays_and_a_claim_without_a_pod_waits() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "retained");
    let data_dir = cluster.host.data_dir.clone();
    wait("there is a default class", || {
        cluster
            .try_kubectl(&["get", "storageclass", "local-path"])
            .ok()
    });
    cluster.apply(&claim("data"));
    wait("the claim says what it waits for", || {
        let events = cluster.events("data");
        let text = "waiting for first consumer to be created before binding";
        events.contains(text).then_some(())
    });
    let of_claim = "persistentVolumeClaim: { claimName: data }";
    cluster.apply(&pod("writer", of_claim, ""));
    let (volume, directory) = volume_of(&cluster, "data", &data_dir);
    has_lines(&directory, 1);
    let retain = r#"{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}"#;
    cluster.kubectl(&["patch", "pv", &volume, "-p", retain]);
    cluster.kubectl(&["delete", "pod", "writer"]);
    cluster.kubectl(&["delete", "pvc", "data"]);
    cluster.wait_value(&["pv", &volume], "{.status.phase}", "Released");
    cluster.kubectl(&["delete", "pv", &volume]);
    cluster.wait_gone(&["pv", &volume]);
    has_lines(&directory, 1);
}

#[test]
fn a_volume_is_on_the_node_of_its_pod_and_waits_for_that_node_to_be_removed() {
    let mut lab = Lab::new();
    let server = lab.server("server", &["--node-monitor-grace-period", "20s"]);
    let host = lab.host("far");
    let token = token(&server);
    let agent = start_agent(&mut lab, &server, &host, "far", &token);
    lab.wait_ready(&server, "far");
    let busybox = pictures::busybox(&lab.path(""), IMAGE);
    import(&host, &busybox);
    let here = lab.host("near");
    import(&here, &busybox);
    start_agent(&mut lab, &server, &here, "near", &token);
    lab.wait_ready(&server, "near");
    wait("there is a default class", || {
        server
            .try_kubectl(&["get", "storageclass", "local-path"])
            .ok()
    });
    server.apply(&claim("data"));
    let of_claim = "persistentVolumeClaim: { claimName: data }";
    let there = "nodeSelector: { kubernetes.io/hostname: far }";
    server.apply(&pod("first", of_claim, there));
    let (volume, directory) = volume_of(&server, "data", &host.data_dir);
    has_lines(&directory, 1);
    server.kubectl(&["delete", "pod", "first"]);
    // The next pod goes where the volume is.
    server.apply(&pod("second", of_claim, ""));
    has_lines(&directory, 2);
    assert_eq!(server.value(&["pod", "second"], "{.spec.nodeName}"), "far");
    server.kubectl(&["delete", "pod", "second"]);
    server.wait_gone(&["pod", "second"]);

    lab.process(agent).terminate();
    let ready = "{.status.conditions[?(@.type==\"Ready\")].status}";
    server.wait_value(&["node", "far"], ready, "Unknown");
    server.kubectl(&["delete", "pvc", "data"]);
    server.wait_for(
        &["pv", &volume],
        "{.metadata.deletionTimestamp}",
        "is going",
        |value| !value.is_empty(),
    );
    // One of a node that is there comes and goes meanwhile.
    server.apply(&claim("brief"));
    let of_claim = "persistentVolumeClaim: { claimName: brief }";
    let there = "nodeSelector: { kubernetes.io/hostname: near }";
    server.apply(&pod("third", of_claim, there));
    let (other, brief) = volume_of(&server, "brief", &here.data_dir);
    has_lines(&brief, 1);
    server.kubectl(&["delete", "pod", "third"]);
    server.kubectl(&["delete", "pvc", "brief"]);
    server.wait_gone(&["pv", &other]);
    let waits = ["get", "pv", &volume, "-o", "name"];
    let waits = server.kubectl(&waits);
    assert_eq!(waits.trim(), format!("persistentvolume/{volume}"));
    has_lines(&directory, 2);
    start_agent(&mut lab, &server, &host, "far", &token);
    server.wait_gone(&["pv", &volume]);
    assert!(!directory.exists());
}
