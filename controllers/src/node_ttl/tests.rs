//! The whole loop against a server in memory.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{FakeCluster, spawn};

fn path(number: usize) -> String {
    format!("/api/v1/nodes/n{number:03}")
}

fn said(cluster: &FakeCluster, number: usize) -> Value {
    let node = cluster.api.get(&path(number)).unwrap();
    node["metadata"]["annotations"][plan::ANNOTATION].clone()
}

fn writes(cluster: &FakeCluster) -> usize {
    let history = cluster.api.history();
    let writes = history.iter().filter(|(_, kind, _)| *kind == "MODIFIED");
    writes.count()
}

#[tokio::test(start_paused = true)]
async fn nodes_are_told_once_and_anew_when_there_are_many() {
    let cluster = FakeCluster::new();
    for number in 0..100 {
        let kept = json!({ "metadata": { "annotations": { "kept": "yes" } } });
        cluster.api.put(&path(number), kept);
    }
    let _running = spawn(cluster.client(), Config::default(), run);
    let all = |count: usize, seconds: &str| (0..count).all(|at| said(&cluster, at) == seconds);
    eventually("told", || all(100, "0")).await;
    let first = cluster.api.get(&path(0)).unwrap();
    assert_eq!(first["metadata"]["annotations"]["kept"], "yes");
    // Heartbeats are no work.
    let mut node = first;
    node["status"] = json!({ "phase": "Running" });
    cluster.api.put(&path(0), node);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(writes(&cluster), 101, "one is the heartbeat");

    cluster.api.put(&path(100), json!({}));
    eventually("told anew", || all(101, "15")).await;
    (90..101).for_each(|number| cluster.api.delete(&path(number)));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(all(90, "15"));
    cluster.api.delete(&path(89));
    eventually("told once more", || all(89, "0")).await;
}
