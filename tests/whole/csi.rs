//! Volumes of a driver through its socket: it comes late, agents are killed in the middle, and in
//! the end nothing is left but what pods wrote.

use crate::claims::{is_bound, volume_and_claim};
use crate::csi_driver::{Driver, NAME};
use crate::faults::{start_agent, token};
use crate::lab::{Cluster, Lab, import, wait};
use crate::pictures;
use crate::workloads::{IMAGE, with_images};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

fn driver_object(more: &str) -> String {
    format!(
        r#"
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {{ name: {NAME} }}
spec:
  volumeLifecycleModes: [Persistent, Ephemeral]
  {more}
"#
    )
}

const LOOSE: &str = "attachRequired: false
  podInfoOnMount: true
  fsGroupPolicy: File
  tokenRequests: [{ audience: vault }]";

fn pod(name: &str, volume: &str, command: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: {name} }}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: {{ fsGroup: 4321 }}
  volumes: [{{ name: data, {volume} }}]
  containers:
  - name: main
    image: {IMAGE}
    command: [sh, -c, "{command} && sleep 100000"]
    volumeMounts: [{{ name: data, mountPath: /data }}]
"#
    )
}

fn mounts_below(path: &Path) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    let below = points.filter(|point| Path::new(point).starts_with(path) && point.contains("csi"));
    below.map(str::to_owned).collect()
}

/// A driver is done a moment after it was asked.
fn nothing_is_mounted_below(path: &Path) {
    wait("what was mounted is taken down", || {
        mounts_below(path).is_empty().then_some(())
    });
}

fn settled(driver: &Driver, expected: &[&str]) {
    wait("the driver was asked for all of it", || {
        (driver.methods() == expected).then_some(())
    });
}

fn the_server_knows_the_driver(server: &Cluster) {
    let known = "{.spec.drivers[0].name} {.spec.drivers[0].nodeID} \
                 {.spec.drivers[0].topologyKeys[0]} {.spec.drivers[0].allocatable.count}";
    let expected = format!("{NAME} node-of-test topology.test.example/rack 9");
    server.wait_value(&["csinode", "node"], known, &expected);
    let rack = "{.metadata.labels.topology\\.test\\.example/rack}";
    server.wait_value(&["node", "node"], rack, "r1");
}

fn the_pod_and_the_volume_are_told_of(server: &Cluster, driver: &Driver) {
    let published = driver.asked().pop().unwrap();
    let context = &published.maps[&8];
    assert_eq!(context["csi.storage.k8s.io/pod.name"], "writer");
    assert_eq!(context["csi.storage.k8s.io/ephemeral"], "false");
    let tokens = &context["csi.storage.k8s.io/serviceAccount.tokens"];
    assert!(tokens.starts_with("{\"vault\":{"), "{tokens}");
    let summary = server.kubectl(&["get", "--raw", "/api/v1/nodes/node/proxy/stats/summary"]);
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let told = summary["pods"][0]["volume"].as_array().unwrap();
    let told = told.iter().find(|volume| volume["name"] == "data").unwrap();
    assert_eq!(told["usedBytes"], 30, "{told}");
}

#[test]
fn a_volume_of_a_driver_outlives_agents_and_not_its_pod() {
    let mut lab = Lab::new();
    let server = lab.server("server", &[]);
    let host = lab.host("node");
    let token = token(&server);
    let mut agent = start_agent(&mut lab, &server, &host, "node", &token);
    lab.wait_ready(&server, "node");
    import(&host, &pictures::busybox(&lab.path(""), IMAGE));
    server.apply(&driver_object(LOOSE));
    let source = format!("csi: {{ driver: {NAME}, volumeHandle: h1 }}");
    server.apply(&volume_and_claim("data", &source));
    is_bound(&server, "data");
    let claim = "persistentVolumeClaim: { claimName: data }";
    server.apply(&pod("writer", claim, "echo kept > /data/file"));
    let missing = format!(
        "FailedMount: MountVolume.MountDevice failed for volume \"data\" : kubernetes.io/csi: \
         attacher.MountDevice failed to create newCsiDriverClient: driver name {NAME} not found \
         in the list of registered CSI drivers"
    );
    wait("the pod says that the driver is missing", || {
        server.events("writer").contains(&missing).then_some(())
    });

    let (kubelet, volumes) = (host.data_dir.join("agent"), lab.path("volumes"));
    let driver = Driver::start(&kubelet, &volumes);
    server.wait_value(&["pod", "writer"], "{.status.phase}", "Running");
    the_server_knows_the_driver(&server);
    let file = volumes.join("h1/file");
    wait("the pod wrote to the volume", || {
        fs::read_to_string(&file)
            .ok()
            .filter(|text| text == "kept\n")
    });
    assert_eq!(fs::metadata(volumes.join("h1")).unwrap().gid(), 4321);
    the_pod_and_the_volume_are_told_of(&server, &driver);

    // The pod goes while no agent is there; the next one finds what is to be undone.
    lab.process(agent).kill();
    server.kubectl(&["delete", "pod", "writer", "--wait=false"]);
    agent = start_agent(&mut lab, &server, &host, "node", &token);
    server.wait_gone(&["pod", "writer"]);
    let all = [
        "NodeStageVolume",
        "NodePublishVolume",
        "NodeUnpublishVolume",
        "NodeUnstageVolume",
    ];
    settled(&driver, &all);
    nothing_is_mounted_below(&kubelet);
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept\n");

    // An agent is killed while the driver works: nobody knows how that ended.
    driver.hold("NodePublishVolume");
    server.apply(&pod("second", claim, "cat /data/file"));
    let begun = [&all[..], &all[..2]].concat();
    settled(&driver, &begun);
    lab.process(agent).kill();
    driver.hold("");
    server.kubectl(&["delete", "pod", "second", "--wait=false"]);
    start_agent(&mut lab, &server, &host, "node", &token);
    server.wait_gone(&["pod", "second"]);
    settled(&driver, &[all, all].concat());
    nothing_is_mounted_below(&kubelet);
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept\n");

    drop(driver);
    server.wait_value(&["csinode", "node"], "{.spec.drivers[*].name}", "");
}

#[test]
fn volumes_live_with_their_pods_or_are_attached_first() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "inline");
    let (kubelet, volumes) = (cluster.host.data_dir.join("agent"), lab.path("volumes"));
    let driver = Driver::start(&kubelet, &volumes);
    cluster.apply(&driver_object(LOOSE));
    let own = format!("csi: {{ driver: {NAME}, volumeAttributes: {{ kind: fast }} }}");
    cluster.apply(&pod("own", &own, "echo mine > /data/file"));
    cluster.wait_value(&["pod", "own"], "{.status.phase}", "Running");
    let published = driver.asked().pop().unwrap();
    let context = &published.maps[&8];
    assert_eq!(context["kind"], "fast");
    assert_eq!(context["csi.storage.k8s.io/ephemeral"], "true");
    cluster.kubectl(&["delete", "pod", "own"]);
    settled(&driver, &["NodePublishVolume", "NodeUnpublishVolume"]);
    nothing_is_mounted_below(&kubelet);

    cluster.kubectl(&["delete", "csidriver", NAME]);
    cluster.apply(&driver_object("attachRequired: true"));
    let source = format!("csi: {{ driver: {NAME}, volumeHandle: h2 }}");
    cluster.apply(&volume_and_claim("far", &source));
    is_bound(&cluster, "far");
    let claim = "persistentVolumeClaim: { claimName: far }";
    cluster.apply(&pod("patient", claim, "true"));
    let name = format!("kubernetes.io/csi/{NAME}^h2");
    let node = ["node", "inline"];
    cluster.wait_value(&node, "{.status.volumesInUse[*]}", &name);
    attach(&cluster);
    cluster.wait_value(&["pod", "patient"], "{.status.phase}", "Running");
    let asked = driver.asked();
    let staged = &asked[asked.len() - 2];
    assert_eq!(staged.method, "NodeStageVolume");
    assert_eq!(staged.maps[&2]["lun"], "7");
    cluster.kubectl(&["delete", "pod", "patient"]);
    cluster.wait_value(&node, "{.status.volumesInUse[*]}", "");
    nothing_is_mounted_below(&kubelet);
    cluster.wait_value(&node, "{.status.volumesAttached[*].name}", "");
    wait("nothing is attached", || {
        let all = cluster.kubectl(&["get", "volumeattachments", "-o", "name"]);
        all.is_empty().then_some(())
    });
}

/// What the driver's attacher does.
fn attach(cluster: &Cluster) {
    let digest = ring::digest::digest(&ring::digest::SHA256, format!("h2{NAME}inline").as_bytes());
    let attachment = format!("csi-{}", hex::encode(digest));
    let of = "{.spec.attacher} {.spec.nodeName} {.spec.source.persistentVolumeName}";
    let expected = format!("{NAME} inline far");
    cluster.wait_value(&["volumeattachment", &attachment], of, &expected);
    let attached = r#"{"status":{"attached":true,"attachmentMetadata":{"lun":"7"}}}"#;
    cluster.kubectl(&[
        "patch",
        "volumeattachment",
        &attachment,
        "--subresource=status",
        "--type=merge",
        "-p",
        attached,
    ]);
}
