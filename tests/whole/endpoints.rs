//! Which pods are behind a Service, as users see it: Deployment and Service, scaled, unready, gone.

use crate::lab::{Cluster, Lab, wait};
use crate::workloads::{IMAGE, with_images};

/// Ready while a file is there.
fn web(replicas: u32) -> String {
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
        image: {IMAGE}
        command: ["sh", "-c", "trap 'exit 0' TERM; touch /ready; while true; do sleep 1; done"]
        ports: [{{ name: http, containerPort: 8080 }}]
        readinessProbe: {{ exec: {{ command: ["test", "-e", "/ready"] }}, periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 20 }}
---
apiVersion: v1
kind: Service
metadata: {{ name: web, labels: {{ tier: front }} }}
spec:
  selector: {{ app: web }}
  ports: [{{ name: http, port: 80, targetPort: http }}]
"#
    )
}

const OF_WEB: &[&str] = &["endpointslices", "-l", "kubernetes.io/service-name=web"];

/// The addresses of pods, as their own status has them.
fn pod_addresses(cluster: &Cluster) -> Vec<String> {
    sorted(&cluster.value(&["pods", "-l", "app=web"], "{.items[*].status.podIP}"))
}

fn sorted(text: &str) -> Vec<String> {
    let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    words.sort();
    words
}

fn ready_in_slices(cluster: &Cluster) -> Vec<String> {
    let path = "{.items[*].endpoints[?(@.conditions.ready==true)].addresses[0]}";
    sorted(&cluster.value(OF_WEB, path))
}

fn ready_in_endpoints(cluster: &Cluster) -> Vec<String> {
    let path = "{.subsets[*].addresses[*].ip}";
    sorted(&cluster.value(&["endpoints", "web"], path))
}

#[track_caller]
fn both_are(cluster: &Cluster, what: &str, wanted: impl Fn() -> Option<Vec<String>>) {
    wait(what, || {
        let wanted = wanted()?;
        (ready_in_slices(cluster) == wanted && ready_in_endpoints(cluster) == wanted).then_some(())
    });
}

#[test]
fn services_follow_their_pods() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "endpoints");
    cluster.apply(&web(3));
    cluster.rolled_out("deployment/web");
    let pods = |count: usize| {
        let addresses = pod_addresses(&cluster);
        (addresses.len() == count).then_some(addresses)
    };
    both_are(&cluster, "three pods are behind the Service", || pods(3));
    let port = "{.items[0].ports[0].name}:{.items[0].ports[0].port}";
    assert_eq!(cluster.value(OF_WEB, port), "http:8080");
    let slices = cluster.kubectl(&["get", "endpointslices", "-l", "tier=front"]);
    assert!(
        slices.contains("IPv4") && slices.contains("8080"),
        "{slices}"
    );

    cluster.kubectl(&["scale", "deployment/web", "--replicas=2"]);
    both_are(&cluster, "two pods are", || pods(2));

    // One says that it is not ready: it is there, and gets nothing.
    let first = cluster.value(&["pods", "-l", "app=web"], "{.items[0].metadata.name}");
    let address = cluster.value(&["pod", &first], "{.status.podIP}");
    let other = || {
        pods(2).map(|mut all| {
            all.retain(|one| *one != address);
            all
        })
    };
    cluster.kubectl(&["exec", &first, "--", "busybox", "rm", "/ready"]);
    both_are(&cluster, "one pod is left", other);
    let not_ready = "{.subsets[*].notReadyAddresses[*].ip}";
    assert_eq!(cluster.value(&["endpoints", "web"], not_ready), address);
    let serving = "{.items[*].endpoints[?(@.conditions.serving==false)].addresses[0]}";
    assert_eq!(cluster.value(OF_WEB, serving), address);
    cluster.kubectl(&["exec", &first, "--", "busybox", "touch", "/ready"]);
    both_are(&cluster, "it is back", || pods(2));

    cluster.kubectl(&["scale", "deployment/web", "--replicas=0"]);
    both_are(&cluster, "none is left", || pods(0));
    // The slice that says so stays.
    assert_eq!(cluster.value(OF_WEB, "{.items[*].addressType}"), "IPv4");

    cluster.kubectl(&["delete", "service", "web"]);
    wait("what was of the Service goes with it", || {
        let left = cluster.kubectl(&[
            "get",
            "endpointslices,endpoints",
            "--no-headers",
            "-o",
            "name",
        ]);
        (!left.contains("/web")).then_some(())
    });
}

/// Its readiness probe says so from when it was asked to end; its liveness probe, which would fail
/// then, is not asked any more.
#[test]
fn a_pod_that_ends_may_say_that_it_takes_no_more() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "ending");
    cluster.apply(&format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: web, labels: {{ app: web }} }}
spec:
  terminationGracePeriodSeconds: 100
  containers:
  - name: web
    image: {IMAGE}
    command: ["sh", "-c", "trap 'rm /ready /alive' TERM; touch /ready /alive; until test -e /end; do sleep 1; done"]
    readinessProbe: {{ exec: {{ command: ["test", "-e", "/ready"] }}, periodSeconds: 1, timeoutSeconds: 20 }}
    livenessProbe: {{ exec: {{ command: ["test", "-e", "/alive"] }}, periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 20 }}
---
apiVersion: v1
kind: Service
metadata: {{ name: web }}
spec:
  selector: {{ app: web }}
  publishNotReadyAddresses: true
  ports: [{{ port: 80 }}]
"#
    ));
    let ready = "{.status.conditions[?(@.type==\"Ready\")].status}";
    cluster.wait_value(&["pod", "web"], ready, "True");
    let conditions = "{.items[*].endpoints[*].conditions.serving},{.items[*].endpoints[*].conditions.terminating}";
    cluster.wait_value(OF_WEB, conditions, "true,false");
    cluster.kubectl(&["delete", "pod", "web", "--wait=false"]);
    cluster.wait_value(&["pod", "web"], ready, "False");
    cluster.wait_value(OF_WEB, conditions, "false,true");
    cluster.wait_events(&["Readiness probe failed"]);
    let events = cluster.kubectl(&["get", "events", "-o", "custom-columns=:.message"]);
    assert!(!events.contains("Liveness"), "{events}");
    cluster.kubectl(&["exec", "web", "--", "busybox", "touch", "/end"]);
    cluster.wait_gone(&["pod", "web"]);
}

#[test]
fn endpoints_that_people_write_are_mirrored() {
    let mut lab = Lab::new();
    let cluster = lab.server("mirror", &[]);
    let manifest = r"
apiVersion: v1
kind: Service
metadata: { name: db }
spec: { ports: [{ name: sql, port: 5432 }] }
---
apiVersion: v1
kind: Endpoints
metadata: { name: db }
subsets:
- addresses: [{ ip: 192.0.2.7 }]
  ports: [{ name: sql, port: 5432 }]
";
    cluster.apply(manifest);
    let of_db: &[&str] = &["endpointslices", "-l", "kubernetes.io/service-name=db"];
    let shown = "{.items[*].endpoints[*].addresses[0]}:{.items[*].ports[0].port}";
    cluster.wait_value(of_db, shown, "192.0.2.7:5432");
    cluster.apply(&manifest.replace("192.0.2.7", "192.0.2.8"));
    cluster.wait_value(of_db, shown, "192.0.2.8:5432");
    cluster.kubectl(&["delete", "endpoints", "db"]);
    cluster.wait_value(of_db, "{.items[*].metadata.name}", "");
}
