//! Pods whose volumes are claims of the node's own directories, bound to volumes that people made.

use crate::lab::{Cluster, Lab, wait};
use crate::workloads::{IMAGE, with_images};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A volume of 1Gi and the claim for it; `source` is the volume's kind.
pub fn volume_and_claim(name: &str, source: &str) -> String {
    format!("{}---{}", volume(name, source), claim(name))
}

fn volume(name: &str, source: &str) -> String {
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
"#
    )
}

fn claim(name: &str) -> String {
    format!(
        r#"
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

pub fn is_bound(cluster: &Cluster, name: &str) {
    cluster.wait_value(&["pvc", name], "{.status.phase}", "Bound");
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
    cluster.apply(&claim("data"));
    // On a node that nobody chose.
    let group = "nodeName: claims
  securityContext: { fsGroup: 4321, runAsUser: 1000 }";
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
    cluster.apply(&volume("data", &local(&disk, "claims")));
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
    is_bound(&cluster, "data");
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
    is_bound(&cluster, "plain");
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
    is_bound(&cluster, "raw");
    cluster.apply(&with_devices("plain"));
    cluster.wait_value(&["pod", "plain"], "{.status.phase}", "Succeeded");
    for container in ["main", "elsewhere"] {
        let log = cluster.kubectl(&["logs", "plain", "-c", container]);
        assert_eq!(log, "12 34 7 9\n", "{container}");
    }
    assert_eq!(fs::metadata(&disk).unwrap().mode() & 0o7777, 0o640);
}

/// What `kubectl get pv` says: of one that is claimed, and of one whose claim is gone.
#[test]
fn a_claim_gets_the_smallest_volume_that_fits_and_leaves_it_released() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "binder");
    let sized = |name: &str, size: &str| {
        let source = "hostPath: { path: /nowhere }";
        volume(name, source).replace("storage: 1Gi", &format!("storage: {size}"))
    };
    for (name, size) in [("small", "1Gi"), ("middling", "5Gi"), ("large", "10Gi")] {
        cluster.apply(&sized(name, size));
    }
    let open = claim("data")
        .replace("volumeName: data", "")
        .replace("1Gi", "2Gi");
    cluster.apply(&open);
    is_bound(&cluster, "data");
    let seen = "{.spec.volumeName} {.status.capacity.storage} {.status.accessModes[0]}";
    let value = cluster.value(&["pvc", "data"], seen);
    assert_eq!(value, "middling 5Gi ReadWriteOnce");
    let table = cluster.kubectl(&["get", "pv", "middling", "--no-headers"]);
    let words: Vec<&str> = table.split_whitespace().collect();
    assert_eq!(
        words[..6],
        ["middling", "5Gi", "RWO", "Retain", "Bound", "default/data"]
    );
    cluster.kubectl(&["delete", "pvc", "data"]);
    cluster.wait_value(&["pv", "middling"], "{.status.phase}", "Released");
    // The next claim of the name gets another one, and one that nothing fits says so.
    cluster.apply(&open);
    is_bound(&cluster, "data");
    assert_eq!(
        cluster.value(&["pvc", "data"], "{.spec.volumeName}"),
        "large"
    );
    cluster.apply(&open.replace("name: data", "name: more"));
    wait("the claim says what is missing", || {
        let events = cluster.events("more");
        let text = "no persistent volumes available for this claim and no storage class is set";
        events.contains(text).then_some(())
    });
    // Its volume is gone: that is told, and not undone.
    let unprotected = r#"{"metadata":{"finalizers":null}}"#;
    cluster.kubectl(&["delete", "pv", "large", "--wait=false"]);
    cluster.kubectl(&["patch", "pv", "large", "-p", unprotected]);
    cluster.wait_value(&["pvc", "data"], "{.status.phase}", "Lost");
}
