//! Deployments as users drive them: apply, scale, roll, undo; and the story that events tell.

use crate::lab::{Cluster, Lab, wait};
use crate::pictures;

pub const IMAGE: &str = "example.test/busybox:1";
pub const IMAGE_2: &str = "example.test/busybox:2";

pub fn web(image: &str, replicas: u32) -> String {
    format!(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: web }}
spec:
  replicas: {replicas}
  selector: {{ matchLabels: {{ app: web }} }}
  template:
    metadata: {{ labels: {{ app: web }} }}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: {image}
        command: ["sh", "-c", "trap 'exit 0' TERM; echo started; while true; do sleep 1; done"]
"#
    )
}

pub fn with_images(lab: &mut Lab, name: &str) -> Cluster {
    with_images_and(lab, name, &[])
}

pub fn with_images_and(lab: &mut Lab, name: &str, more: &[&str]) -> Cluster {
    let cluster = lab.cluster(name, more);
    for image in [IMAGE, IMAGE_2] {
        cluster.import(&pictures::busybox(&lab.path(""), image));
    }
    cluster
}

#[test]
fn a_deployment_is_applied_scaled_rolled_and_undone() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "roll");
    assert!(
        cluster
            .apply(&web(IMAGE, 3))
            .contains("deployment.apps/web created")
    );
    cluster.kubectl(&["rollout", "status", "deployment/web", "--timeout=100s"]);
    cluster.wait_value(&["deployment", "web"], "{.status.readyReplicas}", "3");

    let pods = cluster.kubectl(&["get", "pods", "-o", "wide"]);
    let rows: Vec<&str> = pods.lines().skip(1).collect();
    assert_eq!(rows.len(), 3, "{pods}");
    for row in rows {
        assert!(
            row.contains("1/1") && row.contains("Running") && row.contains("10.42."),
            "{pods}"
        );
    }

    assert!(cluster.apply(&web(IMAGE, 3)).contains("unchanged"));
    cluster.kubectl(&["scale", "deployment/web", "--replicas=5"]);
    cluster.wait_value(&["deployment", "web"], "{.status.readyReplicas}", "5");
    cluster.kubectl(&["scale", "deployment/web", "--replicas=2"]);
    cluster.wait_value(&["deployment", "web"], "{.status.replicas}", "2");

    let container = format!("web={IMAGE_2}");
    cluster.kubectl(&["set", "image", "deployment/web", &container]);
    cluster.kubectl(&["rollout", "status", "deployment/web", "--timeout=100s"]);
    let images = "{.items[*].spec.containers[0].image}";
    wait("only new pods are left", || {
        (cluster.value(&["pods", "-l", "app=web"], images) == format!("{IMAGE_2} {IMAGE_2}"))
            .then_some(())
    });
    let history = cluster.kubectl(&["rollout", "history", "deployment/web"]);
    assert!(
        history.contains("\n1 ") && history.contains("\n2 "),
        "{history}"
    );

    cluster.kubectl(&["rollout", "undo", "deployment/web"]);
    cluster.kubectl(&["rollout", "status", "deployment/web", "--timeout=100s"]);
    let image = "{.spec.template.spec.containers[0].image}";
    assert_eq!(cluster.value(&["deployment", "web"], image), IMAGE);

    cluster.wait_events(&[
        "ScalingReplicaSet",
        "Scaled up replica set web-",
        "SuccessfulCreate",
        "Created pod: web-",
        "Scheduled",
        "Successfully assigned default/web-",
        "Pulled",
        "Started",
        "Killing",
    ]);

    cluster.kubectl(&["delete", "deployment", "web"]);
    wait("garbage collection takes the pods away", || {
        cluster
            .kubectl(&["get", "pods,replicasets", "-o", "name"])
            .is_empty()
            .then_some(())
    });
}

#[test]
fn a_namespace_is_emptied_when_it_is_deleted() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "spaces");
    cluster.kubectl(&["create", "namespace", "site"]);
    wait("a new namespace gets its service account", || {
        cluster
            .try_kubectl(&["-n", "site", "get", "serviceaccount", "default"])
            .ok()
    });
    cluster.kubectl(&["-n", "site", "create", "configmap", "a"]);
    cluster.kubectl(&[
        "-n",
        "site",
        "create",
        "deployment",
        "web",
        &format!("--image={IMAGE}"),
    ]);
    cluster.kubectl(&["delete", "namespace", "site", "--timeout=100s"]);
    let error = cluster
        .try_kubectl(&["get", "namespace", "site"])
        .unwrap_err();
    assert!(error.contains("namespaces \"site\" not found"), "{error}");
}

#[test]
fn a_pod_that_fits_nowhere_says_why() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "full");
    cluster.apply(&format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: huge }}
spec:
  containers:
  - name: huge
    image: {IMAGE}
    resources: {{ requests: {{ cpu: "1000" }} }}
"#
    ));
    let reason = "{.status.conditions[?(@.type==\"PodScheduled\")].reason}";
    cluster.wait_value(&["pod", "huge"], reason, "Unschedulable");
    let events = wait("an event says so", || {
        let events = cluster.kubectl(&["get", "events"]);
        events.contains("FailedScheduling").then_some(events)
    });
    assert!(
        events.contains("0/1 nodes are available: 1 Insufficient cpu."),
        "{events}"
    );
}
