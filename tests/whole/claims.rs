//! Pods whose volumes are claims of the node's own directories. Nobody binds claims here: the
//! tests do what a controller will.

use crate::lab::{Cluster, Lab, wait};
use crate::workloads::{IMAGE, with_images};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A volume of 1Gi and the claim for it; `source` is the volume's kind.
pub fn volume_and_claim(name: &str, source: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: PersistentVolume
metadata: {{ name: {name} }}
spec:
  capacity: {{ storage: 1Gi }}
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  {source}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{ name: {name} }}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  volumeName: {name}
  resources: {{ requests: {{ storage: 1Gi }} }}
"#
    )
}

/// What the binder will do.
pub fn bind(cluster: &Cluster, name: &str) {
    let uid = cluster.value(&["pvc", name], "{.metadata.uid}");
    let to = format!(r#""name":"{name}","namespace":"default","uid":"{uid}""#);
    let claim = format!(r#"{{"spec":{{"claimRef":{{{to}}}}}}}"#);
    cluster.kubectl(&["patch", "pv", name, "-p", &claim]);
    let bound = r#"{"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}}"#;
    cluster.kubectl(&["patch", "pvc", name, "--subresource=status", "-p", bound]);
}

fn local(path: &Path, node: &str) -> String {
    let path = path.display();
    format!(
        "local: {{ path: {path} }}
  nodeAffinity: {{ required: {{ nodeSelectorTerms: [{{ matchExpressions: \
         [{{ key: kubernetes.io/hostname, operator: In, values: [{node}] }}] }}] }} }}"
    )
}

fn pod(name: &str, claim: &str, command: &str, more: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: {name} }}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  volumes: [{{ name: data, persistentVolumeClaim: {{ claimName: {claim} }} }}]
  {more}
  containers:
  - name: main
    image: {IMAGE}
    command: [sh, -c, "{command}"]
    volumeMounts:
    - {{ name: data, mountPath: /data }}
    - {{ name: data, mountPath: /part, subPath: inner/part }}
"#
    )
}

#[test]
fn a_pod_waits_for_its_claim_and_what_it_writes_stays() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "claims");
    let disk = lab.path("disk");
    fs::create_dir(&disk).unwrap();
    fs::write(disk.join("old"), "old").unwrap();
    cluster.apply(&volume_and_claim("data", &local(&disk, "claims")));
    let group = "securityContext: { fsGroup: 4321, runAsUser: 1000 }";
    let line = "cat /data/old && echo new > /data/new && echo deep > /part/file && id -G";
    cluster.apply(&pod("writer", "data", line, group));
    let said = "Unable to attach or mount volumes: unmounted volumes=[data], unattached \
                volumes=[], failed to process volumes=[data]: error processing PVC default/data: \
                PVC is not bound";
    wait("the pod says what it waits for", || {
        cluster.events("writer").contains(said).then_some(())
    });
    let waiting = "{.status.containerStatuses[0].state.waiting.reason}";
    cluster.wait_value(&["pod", "writer"], waiting, "ContainerCreating");
    bind(&cluster, "data");
    cluster.wait_value(&["pod", "writer"], "{.status.phase}", "Succeeded");
    let log = cluster.kubectl(&["logs", "writer"]);
    assert!(log.starts_with("old") && log.contains("4321"), "{log}");
    cluster.kubectl(&["delete", "pod", "writer"]);
    let kept = fs::read_to_string(disk.join("inner/part/file")).unwrap();
    assert_eq!(kept, "deep\n");
    assert_eq!(fs::metadata(disk.join("old")).unwrap().gid(), 4321);

    let read_only = pod("reader", "data", "cat /data/new; touch /data/x", "")
        .replace("claimName: data }", "claimName: data, readOnly: true }");
    // Nothing can be made below a volume that is only read: the part is there already.
    cluster.apply(&read_only);
    cluster.wait_value(&["pod", "reader"], "{.status.phase}", "Failed");
    let log = cluster.kubectl(&["logs", "reader"]);
    assert!(
        log.starts_with("new\n") && log.contains("Read-only"),
        "{log}"
    );
}

#[test]
fn a_volume_that_is_not_there_is_waited_for() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "absent");
    let disk = lab.path("disk");
    cluster.apply(&volume_and_claim("data", &local(&disk, "absent")));
    bind(&cluster, "data");
    let line = "echo here > /data/file";
    cluster.apply(&pod("early", "data", line, ""));
    let said = format!(
        "MountVolume.NewMounter initialization failed for volume \"data\" : path {:?} does not \
         exist",
        disk.display().to_string()
    );
    wait("the pod says what is missing", || {
        cluster.events("early").contains(&said).then_some(())
    });
    fs::create_dir(&disk).unwrap();
    cluster.wait_value(&["pod", "early"], "{.status.phase}", "Succeeded");
    assert_eq!(fs::read_to_string(disk.join("file")).unwrap(), "here\n");

    let plain = lab.path("plain");
    let source = format!(
        "hostPath: {{ path: {}, type: DirectoryOrCreate }}",
        plain.display()
    );
    cluster.apply(&volume_and_claim("plain", &source));
    bind(&cluster, "plain");
    cluster.apply(&pod("late", "plain", line, ""));
    cluster.wait_value(&["pod", "late"], "{.status.phase}", "Succeeded");
    assert_eq!(fs::read_to_string(plain.join("file")).unwrap(), "here\n");
}

fn with_devices(name: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: {name} }}
spec:
  restartPolicy: Never
  volumes: [{{ name: raw, persistentVolumeClaim: {{ claimName: raw }} }}]
  containers:
  - name: main
    image: {IMAGE}
    command: [sh, -c, "test -b /dev/raw && stat -c '%u %g %t %T' /dev/raw"]
    volumeDevices: [{{ name: raw, devicePath: /dev/raw }}]
  - name: elsewhere
    image: {IMAGE}
    command: [sh, -c, "test -b /data/raw && stat -c '%u %g %t %T' /data/raw && ! chmod 600 /data/raw 2> /dev/null"]
    volumeDevices: [{{ name: raw, devicePath: /data/raw }}]
"#
    )
}

#[test]
fn a_container_has_a_device_where_it_asks_for_it() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "devices");
    let disk = lab.path("disk");
    let (kind, mode) = (SFlag::S_IFBLK, Mode::from_bits_truncate(0o640));
    mknod(&disk, kind, mode, makedev(7, 9)).unwrap();
    std::os::unix::fs::chown(&disk, Some(12), Some(34)).unwrap();
    let source = format!("volumeMode: Block\n  {}", local(&disk, "devices"));
    let both = volume_and_claim("raw", &source)
        .replace("volumeName: raw", "volumeName: raw\n  volumeMode: Block");
    cluster.apply(&both);
    bind(&cluster, "raw");
    cluster.apply(&with_devices("plain"));
    cluster.wait_value(&["pod", "plain"], "{.status.phase}", "Succeeded");
    for container in ["main", "elsewhere"] {
        let log = cluster.kubectl(&["logs", "plain", "-c", container]);
        assert_eq!(log, "12 34 7 9\n", "{container}");
    }
    assert_eq!(fs::metadata(&disk).unwrap().mode() & 0o7777, 0o640);
}
