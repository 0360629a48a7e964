//! The loop against a server in memory: how few writes a burst ends in, and what does not wait.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{FakeCluster, spawn};

const SET: &str = "/apis/apps/v1/namespaces/default/replicasets/web";
const PODS: &str = "/api/v1/namespaces/default/pods";
/// Between two changes of the burst.
const BEAT: Duration = Duration::from_millis(4);

fn pods(cluster: &FakeCluster) -> Vec<Value> {
    cluster.api.objects("/api/v1/pods")
}

fn put_pod(cluster: &FakeCluster, number: usize, phase: &str) {
    let mut pod = pods(cluster).swap_remove(number);
    let ready = if phase == "Running" { "True" } else { "False" };
    pod["status"] = json!({"phase": phase, "conditions": [
        {"type": "Ready", "status": ready, "lastTransitionTime": "2029-12-31T00:00:00Z"},
    ]});
    let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.api.put(&format!("{PODS}/{name}"), pod);
}

fn ready(cluster: &FakeCluster) -> Value {
    cluster.api.get(SET).unwrap()["status"]["readyReplicas"].clone()
}

/// Counts writes of the set's status from now on.
fn status_writes(cluster: &FakeCluster) -> Arc<AtomicUsize> {
    let writes = Arc::new(AtomicUsize::new(0));
    let counted = writes.clone();
    let status = format!("{SET}/status");
    cluster.on_request(move |method, path| {
        let is_write = *method == http::Method::PUT && path == status;
        counted.fetch_add(usize::from(is_write), Relaxed);
        None
    });
    writes
}

/// A set of twenty whose pods are there, none of them ready, and that has been quiet for long.
async fn quiet_set(cluster: &FakeCluster) {
    cluster.api.put(SET, json!(set(&["replicas=20"])));
    eventually("the pods are counted", || {
        cluster.api.get(SET).unwrap()["status"]["replicas"] == 20
    })
    .await;
    tokio::time::sleep(Duration::from_secs(10)).await;
}

/// Time is paused: it goes on only when all that can be done has been done.
#[tokio::test(start_paused = true)]
async fn a_burst_ends_in_few_writes_and_its_first_and_last_are_told_at_once() {
    let cluster = FakeCluster::new();
    let _running = spawn(cluster.client(), Config::default(), run_replica_sets);
    quiet_set(&cluster).await;
    let writes = status_writes(&cluster);
    put_pod(&cluster, 0, "Running");
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(ready(&cluster), 1, "a lone change waits for nothing");
    for number in 1..19 {
        put_pod(&cluster, number, "Running");
        tokio::time::sleep(BEAT).await;
    }
    assert_eq!(writes.load(Relaxed), 1);
    put_pod(&cluster, 19, "Running");
    tokio::time::sleep(Duration::from_millis(11)).await;
    assert_eq!(ready(&cluster), 20, "that all has settled is told");
    assert_eq!(writes.load(Relaxed), 2);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(writes.load(Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_burst_that_stops_half_way_is_counted_after_a_pause() {
    let cluster = FakeCluster::new();
    let _running = spawn(cluster.client(), Config::default(), run_replica_sets);
    quiet_set(&cluster).await;
    let writes = status_writes(&cluster);
    for number in 0..10 {
        put_pod(&cluster, number, "Running");
        tokio::time::sleep(BEAT).await;
    }
    assert_eq!(ready(&cluster), 1);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(ready(&cluster), 10);
    assert_eq!(writes.load(Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_fails_in_a_burst_is_replaced_at_once() {
    let cluster = FakeCluster::new();
    let _running = spawn(cluster.client(), Config::default(), run_replica_sets);
    quiet_set(&cluster).await;
    put_pod(&cluster, 0, "Running");
    tokio::time::sleep(BEAT).await;
    put_pod(&cluster, 1, "Failed");
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(pods(&cluster).len(), 21);
}

/// The deletion of the set has not come to the cache when its pods are gone from it.
#[tokio::test(start_paused = true)]
async fn pods_of_a_set_that_is_being_deleted_are_not_replaced() {
    for is_deleted in [true, false] {
        let cluster = FakeCluster::new();
        let _running = spawn(cluster.client(), Config::default(), run_replica_sets);
        quiet_set(&cluster).await;
        let mut fresh = cluster.api.get(SET).unwrap();
        if is_deleted {
            fresh["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
        }
        cluster.on_request(move |method, path| {
            (*method == http::Method::GET && path == SET).then(|| (200, fresh.clone()))
        });
        let name = pods(&cluster)[0]["metadata"]["name"].clone();
        cluster
            .api
            .delete(&format!("{PODS}/{}", name.as_str().unwrap()));
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(pods(&cluster).len(), if is_deleted { 19 } else { 20 });
    }
}
