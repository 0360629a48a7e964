//! The whole loop against a server in memory.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{FakeCluster, spawn};

const CLAIM: &str = "/api/v1/namespaces/default/persistentvolumeclaims/c";
const VOLUME: &str = "/api/v1/persistentvolumes/v";

fn put(cluster: &FakeCluster, source: &Value) {
    let mut volume = json!({ "spec": {
        "claimRef": { "namespace": "default", "name": "c", "uid": "u" },
    } });
    crate::fake_api::merge(&mut volume["spec"], source);
    cluster.api.put(VOLUME, volume);
    put_claim(cluster, "1Gi", "1Gi");
}

fn put_claim(cluster: &FakeCluster, asks: &str, has: &str) {
    let mut claim = cluster
        .api
        .get(CLAIM)
        .unwrap_or_else(|| json!({ "metadata": { "uid": "u" } }));
    let change = json!({
        "spec": { "volumeName": "v", "resources": { "requests": { "storage": asks } } },
        "status": { "phase": "Bound", "capacity": { "storage": has } },
    });
    crate::fake_api::merge(&mut claim, &change);
    cluster.api.put(CLAIM, claim);
}

fn events_of(cluster: &FakeCluster) -> Vec<Value> {
    cluster.api.objects("/api/v1/events")
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_grows_is_told_to_wait_once() {
    let cluster = FakeCluster::new();
    put(
        &cluster,
        &json!({ "csi": { "driver": "d", "volumeHandle": "h" } }),
    );
    let _running = spawn(cluster.client(), Config::default(), run);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(events_of(&cluster).is_empty());
    put_claim(&cluster, "2Gi", "1Gi");
    eventually("told", || !events_of(&cluster).is_empty()).await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    let events = events_of(&cluster);
    assert_eq!(events.len(), 1);
    let event = &events[0];
    assert_eq!(event["reason"], "ExternalExpanding");
    assert_eq!(event["type"], "Normal");
    let message = "waiting for an external controller to expand this PVC";
    assert_eq!(event["message"], message);
    assert_eq!(event["source"]["component"], "volume_expand");
    let count = event["count"].as_i64().unwrap_or(1);
    assert_eq!(count, 1, "nothing changed since: {event}");
}

#[tokio::test(start_paused = true)]
async fn the_resizer_of_what_was_once_built_in_is_named() {
    let cluster = FakeCluster::new();
    put(&cluster, &json!({ "cinder": { "volumeID": "i" } }));
    put_claim(&cluster, "2Gi", "1Gi");
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("named", || {
        let claim = cluster.api.get(CLAIM).unwrap();
        claim["metadata"]["annotations"][plan::RESIZER] == "cinder.csi.openstack.org"
    })
    .await;
    eventually("told", || !events_of(&cluster).is_empty()).await;
    let message = "CSI migration enabled for kubernetes.io/cinder; waiting for external resizer to \
                   expand the pvc";
    assert_eq!(events_of(&cluster)[0]["message"], message);
}
