//! StatefulSets as users drive them: in order, with names and claims of their own, rolled out down
//! to a partition, and undone.

use crate::claims::is_bound;
use crate::lab::{Cluster, Lab, wait};
use crate::workloads::{IMAGE, IMAGE_2, with_images};

/// `more` goes into the spec.
fn set(replicas: u32, more: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Service
metadata: {{ name: peers }}
spec: {{ clusterIP: None, selector: {{ app: web }}, ports: [{{ port: 80 }}] }}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{ name: web }}
spec:
  replicas: {replicas}
  serviceName: peers
  selector: {{ matchLabels: {{ app: web }} }}
  {more}
  template:
    metadata: {{ labels: {{ app: web }} }}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: {IMAGE}
        command: ["sh", "-c", "trap 'exit 0' TERM; while true; do sleep 1; done"]
"#
    )
}

fn images(cluster: &Cluster) -> String {
    let path = "{range .items[*]}{.metadata.name}={.spec.containers[0].image} {end}";
    cluster.value(&["pods", "-l", "app=web"], path)
}

#[test]
fn a_stateful_set_is_applied_scaled_rolled_to_a_partition_and_undone() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "ordered");
    cluster.apply(&set(2, ""));
    cluster.rolled_out("statefulset/web");
    let created = |name: &str| cluster.value(&["pod", name], "{.metadata.creationTimestamp}");
    let ready = r#"{.status.conditions[?(@.type=="Ready")].lastTransitionTime}"#;
    // Times have seconds: RFC 3339 sorts as text.
    assert!(cluster.value(&["pod", "web-0"], ready) <= created("web-1"));
    wait("each pod has a name", || {
        let look = [
            "exec",
            "web-0",
            "--",
            "nslookup",
            "web-1.peers.default.svc.cluster.local",
        ];
        let answer = cluster.try_kubectl(&look).ok()?;
        answer
            .contains(&cluster.value(&["pod", "web-1"], "{.status.podIP}"))
            .then_some(())
    });
    assert_eq!(
        cluster.kubectl(&["exec", "web-1", "--", "hostname"]),
        "web-1\n"
    );

    cluster.kubectl(&["scale", "statefulset/web", "--replicas=3"]);
    cluster.wait_value(&["statefulset", "web"], "{.status.readyReplicas}", "3");
    let partition = r#"{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}}}}"#;
    cluster.kubectl(&["patch", "statefulset", "web", "-p", partition]);
    let container = format!("web={IMAGE_2}");
    cluster.kubectl(&["set", "image", "statefulset/web", &container]);
    cluster.rolled_out("statefulset/web");
    assert_eq!(
        images(&cluster),
        format!("web-0={IMAGE} web-1={IMAGE} web-2={IMAGE_2} ")
    );
    // Below the partition a pod that is lost comes back as it was.
    cluster.kubectl(&["delete", "pod", "web-1"]);
    wait("it is as it was", || {
        let ready = cluster.value(&["statefulset", "web"], "{.status.readyReplicas}");
        (ready == "3" && images(&cluster).contains(&format!("web-1={IMAGE} "))).then_some(())
    });
    cluster.kubectl(&[
        "patch",
        "statefulset",
        "web",
        "-p",
        &partition.replace('2', "0"),
    ]);
    cluster.rolled_out("statefulset/web");
    assert!(!images(&cluster).contains(&format!("={IMAGE} ")));

    cluster.kubectl(&["rollout", "undo", "statefulset/web"]);
    cluster.rolled_out("statefulset/web");
    assert!(!images(&cluster).contains(IMAGE_2));
    let history = cluster.kubectl(&["rollout", "history", "statefulset/web"]);
    assert!(
        history.contains("\n2 ") && history.contains("\n3 "),
        "{history}"
    );

    cluster.kubectl(&["scale", "statefulset/web", "--replicas=0"]);
    cluster.wait_value(&["statefulset", "web"], "{.status.replicas}", "0");
    wait("the events tell of every pod", || {
        let events = cluster.kubectl(&["get", "events"]);
        let mut names = ["web-0", "web-1", "web-2"].iter();
        let told = |verb: &str, name: &str| {
            events.contains(&format!("{verb} Pod {name} in StatefulSet web successful"))
        };
        names
            .all(|name| told("Create", name) && told("Delete", name))
            .then_some(())
    });
    cluster.kubectl(&["delete", "statefulset", "web"]);
}

#[test]
fn claims_are_made_for_each_pod_and_go_when_the_policy_says_so() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "kept");
    let more = "podManagementPolicy: Parallel
  ordinals: { start: 3 }
  persistentVolumeClaimRetentionPolicy: { whenScaled: Delete, whenDeleted: Retain }
  volumeClaimTemplates:
  - metadata: { name: data }
    spec:
      accessModes: [ReadWriteOnce]
      storageClassName: \"\"
      resources: { requests: { storage: 1Gi } }";
    for name in ["data-web-3", "data-web-4"] {
        let path = lab.path(name);
        std::fs::create_dir(&path).unwrap();
        cluster.apply(&format!(
            r#"
apiVersion: v1
kind: PersistentVolume
metadata: {{ name: {name} }}
spec:
  capacity: {{ storage: 1Gi }}
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  hostPath: {{ path: {} }}
"#,
            path.display()
        ));
    }
    cluster.apply(&set(2, more));
    for name in ["data-web-3", "data-web-4"] {
        wait("the claim is there", || {
            cluster.try_kubectl(&["get", "pvc", name]).ok()
        });
        is_bound(&cluster, name);
    }
    cluster.rolled_out("statefulset/web");
    let volume = "{.spec.volumes[?(@.name==\"data\")].persistentVolumeClaim.claimName}";
    assert_eq!(cluster.value(&["pod", "web-4"], volume), "data-web-4");
    cluster.kubectl(&["scale", "statefulset/web", "--replicas=1"]);
    wait("the claim goes with its pod", || {
        let claims = cluster.kubectl(&["get", "pvc", "-o", "name"]);
        (claims == "persistentvolumeclaim/data-web-3\n").then_some(())
    });
    cluster.kubectl(&["delete", "statefulset", "web"]);
    wait("the pods go with the set", || {
        cluster
            .kubectl(&["get", "pods", "-o", "name"])
            .is_empty()
            .then_some(())
    });
    let claims = cluster.kubectl(&["get", "pvc", "-o", "name"]);
    assert_eq!(claims, "persistentvolumeclaim/data-web-3\n");
}
