//! How what was measured is written and printed.

use super::*;
use crate::table::{self, Include};
use expect_test::expect;

const NOW: &str = "2026-01-01T00:01:00Z";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn used(ended: &str, cpu_nano_cores: u64, memory_bytes: u64) -> Used {
    Used {
        at: at(ended),
        window_ns: 15_004_000_000,
        cpu_nano_cores,
        memory_bytes,
    }
}

fn row(row: &Resource, object: Object) -> String {
    let table = table::build(row, &[object], json!({}), Include::None, true, 0);
    let columns = json::list(&table, "columnDefinitions").iter();
    let cells = json::list(&table["rows"][0], "cells").iter();
    let lines: Vec<String> = columns
        .zip(cells)
        .map(|(column, cell)| {
            let [name, format] = ["name", "format"].map(|field| json::text(column, field));
            format!("{name} ({format}): {cell}")
        })
        .collect();
    lines.join("\n")
}

#[test]
fn a_node_is_written_as_metrics_server_writes_it() {
    let used = used("2026-01-01T00:00:59.5Z", 1_500_250_000, 3 << 20);
    let node = node("n1", json!({ "zone": "a" }), &used, at(NOW));
    expect![[r#"
        {
          "apiVersion": "metrics.k8s.io/v1beta1",
          "kind": "NodeMetrics",
          "metadata": {
            "creationTimestamp": "2026-01-01T00:01:00Z",
            "labels": {
              "zone": "a"
            },
            "name": "n1"
          },
          "timestamp": "2026-01-01T00:00:59Z",
          "usage": {
            "cpu": "1500250u",
            "memory": "3Mi"
          },
          "window": "15.004s"
        }"#]]
    .assert_eq(&format!("{:#}", node.to_value()));
    expect![[r#"
        Name (name): "n1"
        cpu (quantity): "1500250u"
        memory (quantity): "3Mi"
        Window (duration): "15.004s""#]]
    .assert_eq(&row(&NODES, node));
}

#[test]
fn a_pod_is_the_sum_of_its_containers_and_as_old_as_the_oldest() {
    let containers = [
        ("a", used("2026-01-01T00:00:59Z", 7, 4096)),
        ("b", used("2026-01-01T00:00:58Z", 0, 1000)),
    ];
    let pod = pod(("ns", "p"), json!({}), &containers, at(NOW)).unwrap();
    expect![[r#"
        {
          "apiVersion": "metrics.k8s.io/v1beta1",
          "containers": [
            {
              "name": "a",
              "usage": {
                "cpu": "7n",
                "memory": "4Ki"
              }
            },
            {
              "name": "b",
              "usage": {
                "cpu": "0",
                "memory": "1k"
              }
            }
          ],
          "kind": "PodMetrics",
          "metadata": {
            "creationTimestamp": "2026-01-01T00:01:00Z",
            "name": "p",
            "namespace": "ns"
          },
          "timestamp": "2026-01-01T00:00:58Z",
          "window": "15.004s"
        }"#]]
    .assert_eq(&format!("{:#}", pod.to_value()));
    expect![[r#"
        Name (name): "p"
        cpu (quantity): "7n"
        memory (quantity): "5096"
        Window (duration): "15.004s""#]]
    .assert_eq(&row(&PODS, pod));
    assert_eq!(super::pod(("ns", "p"), json!({}), &[], at(NOW)), None);
}
