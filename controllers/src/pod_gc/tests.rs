//! The loop against a server in memory.

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{FakeCluster, failure, spawn};
use http::Method;
use std::sync::atomic::{AtomicU32, Ordering};

const NODE: &str = "/api/v1/nodes/here";
const POD: &str = "/api/v1/namespaces/default/pods/web";

#[tokio::test(start_paused = true)]
async fn a_node_that_is_there_keeps_its_pods_although_no_watch_tells_of_it() {
    let cluster = FakeCluster::new();
    cluster.api.put(NODE, json!({}));
    let pod = json!({"metadata": {}, "spec": {"nodeName": "here", "containers": []}});
    cluster.api.put(POD, pod);
    // Nobody hears of nodes: the list is of long ago, and what comes after it is lost.
    cluster.on_request(|_, path| {
        let old = json!({"metadata": {"resourceVersion": "1"}, "items": []});
        (path == "/api/v1/nodes").then_some((200, old))
    });
    let _running = spawn(cluster.client(), Config::default(), run);
    tokio::time::sleep(QUARANTINE * 3).await;
    assert!(cluster.api.get(POD).is_some());

    cluster.api.delete(NODE);
    eventually("the pod goes", || cluster.api.get(POD).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_be_deleted_keeps_none_of_the_others() {
    let cluster = FakeCluster::new();
    let path = |name: &str| format!("/api/v1/namespaces/default/pods/{name}");
    for name in ["a", "poison", "z"] {
        let pod = json!({"metadata": {}, "spec": {"nodeName": "gone", "containers": []}});
        cluster.api.put(&path(name), pod);
    }
    let tries = Arc::new(AtomicU32::new(0));
    let (counted, poison) = (tries.clone(), path("poison"));
    cluster.on_request(move |method, path| {
        let is_it = *method == Method::DELETE && path == poison;
        let refused = is_it && counted.fetch_add(1, Ordering::SeqCst) < 12;
        refused.then(|| (500, failure(500, "InternalError")))
    });
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("the others go", || {
        cluster.api.get(&path("a")).is_none() && cluster.api.get(&path("z")).is_none()
    })
    .await;
    assert!(
        tries.load(Ordering::SeqCst) < 12,
        "it is tried ever more seldom"
    );
    eventually("it is told of", || {
        let events = cluster.api.objects("/api/v1/events");
        events.iter().any(|event| {
            event["reason"] == "FailedReconcile" && event["involvedObject"]["name"] == "poison"
        })
    })
    .await;
    eventually("it goes, too", || {
        cluster.api.get(&path("poison")).is_none()
    })
    .await;
}
