//! The loop against a server in memory.

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{FakeCluster, spawn};

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
