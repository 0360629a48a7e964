//! What a node tells of itself and of its pods: usage, metrics, its own logs; and who may ask.

use crate::lab::{Cluster, Lab, wait};
use crate::workloads::{IMAGE, with_images};
use serde_json::Value;

fn busy() -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: busy }}
spec:
  terminationGracePeriodSeconds: 1
  volumes:
  - {{ name: scratch, emptyDir: {{}} }}
  - {{ name: memory, emptyDir: {{ medium: Memory }} }}
  containers:
  - name: main
    image: {IMAGE}
    command: ["sh", "-c", "dd if=/dev/zero of=/scratch/a bs=1M count=2; dd if=/dev/zero of=/layer bs=1M count=1; exec sh -c 'while true; do :; done'"]
    resources: {{ limits: {{ cpu: 100m, memory: 32Mi }} }}
    volumeMounts: [{{ name: scratch, mountPath: /scratch }}, {{ name: memory, mountPath: /memory }}]
    readinessProbe: {{ exec: {{ command: ["true"] }}, periodSeconds: 1, timeoutSeconds: 20 }}
"#
    )
}

fn number(of: &Value, path: &str) -> u64 {
    let found = of.pointer(path).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("no number {path} in {of}"))
}

fn raw(cluster: &Cluster, path: &str) -> Result<String, String> {
    cluster.try_kubectl(&["get", "--raw", &format!("/api/v1/nodes/numbers{path}")])
}

fn summary(cluster: &Cluster) -> Value {
    serde_json::from_str(&raw(cluster, "/proxy/stats/summary").unwrap()).unwrap()
}

#[test]
fn usage_is_told_by_its_names_to_those_who_may_know() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "numbers");
    cluster.apply(&busy());
    cluster.kubectl(&[
        "wait",
        "--for=condition=Ready",
        "pod/busy",
        "--timeout=100s",
    ]);
    told_of_the_pod(&cluster);
    told_of_the_node(&cluster);
    told_to_those_who_may(&cluster);
}

fn told_of_the_pod(cluster: &Cluster) {
    let pod = wait("what the pod has written is measured", || {
        let summary = summary(cluster);
        let pods = summary["pods"].as_array().unwrap();
        let pod = pods
            .iter()
            .find(|pod| pod["podRef"]["name"] == "busy")?
            .clone();
        let is_measured = pod.pointer("/ephemeral-storage/usedBytes").is_some();
        is_measured.then_some(pod)
    });
    let container = &pod["containers"][0];
    assert_eq!(container["name"], "main");
    assert!(number(container, "/cpu/usageCoreNanoSeconds") > 0);
    let cores = number(container, "/cpu/usageNanoCores");
    assert!(
        cores < 400_000_000,
        "held to a tenth of a processor: {cores}"
    );
    assert!(number(container, "/memory/workingSetBytes") <= 32 << 20);
    assert!(number(container, "/memory/availableBytes") <= 32 << 20);
    assert!(number(container, "/rootfs/capacityBytes") > number(container, "/rootfs/usedBytes"));
    number(container, "/logs/usedBytes");
    assert_eq!(pod["network"]["name"], "eth0");
    number(&pod, "/network/rxBytes");
    number(&pod, "/memory/workingSetBytes");
    assert!(number(&pod, "/process_stats/process_count") >= 1);
    let volumes = pod["volume"].as_array().unwrap();
    let mut names: Vec<&str> = volumes
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    names.sort_unstable();
    assert!(
        names.contains(&"scratch") && names.contains(&"memory"),
        "{names:?}"
    );
    // A walk that began before the pod wrote is good for a minute.
    number(&pod, "/ephemeral-storage/usedBytes");
}

fn told_of_the_node(cluster: &Cluster) {
    for (path, line) in [
        ("/metrics", "kubelet_running_pods "),
        (
            "/metrics/resource",
            "pod_memory_working_set_bytes{namespace=\"default\",pod=\"busy\"} ",
        ),
        (
            "/metrics/resource",
            "container_cpu_usage_seconds_total{container=\"main\",",
        ),
        (
            "/metrics/cadvisor",
            "container_network_receive_bytes_total{container=\"\",",
        ),
        (
            "/metrics/cadvisor",
            "container_fs_usage_bytes{container=\"main\",device=\"node\",",
        ),
        (
            "/metrics/probes",
            "prober_probe_total{container=\"main\",namespace=\"default\",",
        ),
        ("/healthz?verbose", "[+]syncloop ok"),
        ("/runningpods/", "\"name\":\"busy\""),
        ("/configz", "\"kubeletconfig\":{"),
    ] {
        let text = raw(cluster, &format!("/proxy{path}")).unwrap();
        assert!(text.contains(line), "{path}: {text}");
    }
    assert!(
        raw(cluster, "/proxy/logs/")
            .unwrap()
            .starts_with("<!doctype html>")
    );
}

fn told_to_those_who_may(cluster: &Cluster) {
    cluster.kubectl(&[
        "create",
        "clusterrole",
        "scraper",
        "--verb=get",
        "--resource=nodes/metrics",
    ]);
    cluster.kubectl(&[
        "create",
        "clusterrolebinding",
        "scraper",
        "--clusterrole=scraper",
        "--user=scraper",
    ]);
    let as_scraper = |path: &str| {
        let path = format!("/api/v1/nodes/numbers{path}");
        cluster.try_kubectl(&["get", "--raw", &path, "--as=scraper"])
    };
    wait("the role counts", || as_scraper("/proxy/metrics").ok());
    as_scraper(":10250/proxy/metrics/resource").unwrap();
    for path in [
        "/proxy/pods",
        "/proxy/stats/summary",
        "/proxy/logs/",
        "/proxy/run/default/busy/main?cmd=id",
        ":6443/proxy/metrics",
    ] {
        let refused = as_scraper(path).unwrap_err();
        assert!(
            refused.contains("cannot get resource \"nodes/proxy\""),
            "{path}: {refused}"
        );
    }
}
