//! Settings of a running server: the file, the environment over the file, and what is left out.

use crate::lab::{Cluster, Lab, kubectls, wait};
use crate::workloads::{IMAGE, web};

fn server_of(cluster: &Cluster) -> String {
    let jsonpath = "jsonpath={.clusters[0].cluster.server}";
    cluster.kubectl(&["config", "view", "-o", jsonpath])
}

#[test]
fn the_environment_wins_over_the_file() {
    let mut lab = Lab::new();
    let host = lab.host("settings");
    let file = lab.path("server.yaml");
    let text = format!(
        "data-dir: {}\nlisten: 0.0.0.0:7001\nservice-cidr: 10.77.0.0/16\ntls-san: [site.example]\n",
        host.data_dir.display()
    );
    std::fs::write(&file, text).unwrap();
    let path = file.display().to_string();
    let environment = [
        ("CORACLE_LISTEN", "0.0.0.0:7002"),
        ("CORACLE_CONFIG", &path),
    ];
    let process = lab.spawn_with(&host, &environment, &["server"]);
    let cluster = Cluster {
        host,
        process,
        kubectl: kubectls()[0].clone(),
    };
    wait("the server answers", || {
        cluster.try_kubectl(&["get", "--raw", "/readyz"]).ok()
    });
    let expected = format!("https://{}:7002", cluster.host.address);
    assert_eq!(server_of(&cluster), expected);
    let address = "{.spec.clusterIP}";
    cluster.wait_value(&["service", "kubernetes"], address, "10.77.0.1");
    cluster.kubectl(&["--tls-server-name", "site.example", "get", "namespaces"]);
    assert!(lab.process(process).terminate().success());
}

#[test]
fn a_disabled_loop_does_nothing_and_the_others_go_on() {
    let mut lab = Lab::new();
    let cluster = lab.server("without", &["--disable", "scheduler,deployment"]);
    cluster.apply(&web(IMAGE, 1));
    let set = web(IMAGE, 2)
        .replace("kind: Deployment", "kind: ReplicaSet")
        .replace("web", "set");
    cluster.apply(&set);
    cluster.wait_value(&["replicaset", "set"], "{.status.replicas}", "2");
    let metrics = cluster.kubectl(&["get", "--raw", "/metrics"]);
    for (name, is_there) in [
        ("replicaset-controller", true),
        ("deployment-controller", false),
    ] {
        let sample = format!("\nworkqueue_adds_total{{name=\"{name}\"}} ");
        assert_eq!(metrics.contains(&sample), is_there, "{metrics}");
    }
    assert_eq!(cluster.value(&["deployment", "web"], "{.status}"), "{}");
    let conditions = "{.items[*].status.conditions}";
    assert_eq!(cluster.value(&["pods", "-l", "app=set"], conditions), "");
}

fn event(name: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Event\nmetadata: {{ name: {name} }}\ntype: Normal\n\
         reason: Tried\ninvolvedObject: {{ kind: Namespace, name: default, namespace: default }}\n"
    )
}

#[test]
fn an_event_goes_when_its_time_after_the_last_write_is_over_also_across_a_restart() {
    let mut lab = Lab::new();
    let settings = ["--event-ttl", "10s"];
    let server = lab.server("events", &settings);
    server.apply(&(event("left") + &event("counted")));
    let is_there = |server: &Cluster, name: &str| {
        let found = server.try_kubectl(&["get", "event", name, "--ignore-not-found"]);
        !found.unwrap().is_empty()
    };
    let mut writes = 0;
    wait("the event that nobody writes is gone", || {
        writes += 1;
        let count = format!("count={writes}");
        server.kubectl(&["annotate", "event", "counted", "--overwrite", &count]);
        (!is_there(&server, "left")).then_some(())
    });
    assert!(is_there(&server, "counted"), "it was written a moment ago");
    lab.process(server.process).terminate();
    let server = lab.server_on(server.host, &settings);
    wait("the other goes, too", || {
        (!is_there(&server, "counted")).then_some(())
    });
}
