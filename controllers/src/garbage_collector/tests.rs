//! The loop against a cluster in memory.

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{FakeCluster, spawn};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::DropGuard;

const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PODS: &str = "/api/v1/namespaces/default/pods";

struct Site {
    cluster: FakeCluster,
    _running: DropGuard,
}

fn start(cluster: FakeCluster) -> Site {
    let _running = spawn(cluster.client(), Config::default(), run);
    Site { cluster, _running }
}

fn owner(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": format!("uid-{name}"),
           "blockOwnerDeletion": true})
}

impl Site {
    fn put(&self, collection: &str, name: &str, owners: &[Value]) {
        put(&self.cluster, collection, name, owners);
    }

    fn has(&self, collection: &str, name: &str) -> bool {
        self.cluster
            .api
            .get(&format!("{collection}/{name}"))
            .is_some()
    }

    fn object(&self, collection: &str, name: &str) -> Value {
        self.cluster
            .api
            .get(&format!("{collection}/{name}"))
            .unwrap_or_default()
    }

    fn delete(&self, collection: &str, name: &str, propagation: &str) {
        self.cluster
            .delete_as(&format!("{collection}/{name}"), propagation);
    }

    /// Something that only a collector at work does: all before it has been seen.
    async fn at_work(&self) {
        self.put(PODS, "stray", &[owner("ReplicaSet", "never")]);
        eventually("the stray pod is collected", || !self.has(PODS, "stray")).await;
    }
}

fn put(cluster: &FakeCluster, collection: &str, name: &str, owners: &[Value]) {
    let meta = json!({"uid": format!("uid-{name}"), "ownerReferences": owners});
    cluster
        .api
        .put(&format!("{collection}/{name}"), json!({"metadata": meta}));
}

#[tokio::test(start_paused = true)]
async fn dependents_go_when_the_last_owner_is_gone() {
    let site = start(FakeCluster::new());
    site.put(DEPLOYMENTS, "web", &[]);
    site.put(SETS, "web-1", &[owner("Deployment", "web")]);
    site.put(PODS, "web-1-a", &[owner("ReplicaSet", "web-1")]);
    site.put(PODS, "free", &[]);
    site.at_work().await;
    site.delete(DEPLOYMENTS, "web", "Background");
    eventually("the set goes", || !site.has(SETS, "web-1")).await;
    eventually("its pod goes", || !site.has(PODS, "web-1-a")).await;
    assert!(site.has(PODS, "free"));
}

#[tokio::test(start_paused = true)]
async fn owners_that_were_gone_before_the_start_are_missed_too() {
    let cluster = FakeCluster::new();
    put(&cluster, SETS, "live", &[]);
    put(&cluster, PODS, "kept", &[owner("ReplicaSet", "live")]);
    put(&cluster, PODS, "lost", &[owner("ReplicaSet", "gone")]);
    let mut successor = owner("ReplicaSet", "live");
    successor["uid"] = json!("uid-of-its-predecessor");
    put(&cluster, PODS, "older", &[successor]);
    let site = start(cluster);
    eventually("the pod without an owner goes", || !site.has(PODS, "lost")).await;
    eventually("the predecessor's pod goes", || !site.has(PODS, "older")).await;
    assert!(site.has(PODS, "kept"));
}

#[tokio::test(start_paused = true)]
async fn a_reference_to_a_lost_owner_is_removed_while_another_stays() {
    let site = start(FakeCluster::new());
    site.put(SETS, "one", &[]);
    site.put(SETS, "two", &[]);
    let owners = [owner("ReplicaSet", "one"), owner("ReplicaSet", "two")];
    site.put(PODS, "shared", &owners);
    site.at_work().await;
    site.delete(SETS, "one", "Background");
    eventually("the lost reference goes", || {
        site.object(PODS, "shared")["metadata"]["ownerReferences"]
            == json!([owner("ReplicaSet", "two")])
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_foreground_deletion_ends_after_the_dependents() {
    let site = start(FakeCluster::new());
    site.put(DEPLOYMENTS, "web", &[]);
    site.put(SETS, "web-1", &[owner("Deployment", "web")]);
    let held = json!({
        "metadata": {"uid": "uid-held", "finalizers": ["example.com/hold"],
                     "ownerReferences": [owner("ReplicaSet", "web-1")]},
    });
    site.cluster.api.put(&format!("{PODS}/held"), held);
    site.at_work().await;
    site.delete(DEPLOYMENTS, "web", "Foreground");
    eventually("the pod is being deleted", || {
        site.object(PODS, "held")["metadata"]["deletionTimestamp"].is_string()
    })
    .await;
    site.at_work().await;
    assert!(site.has(SETS, "web-1"));
    assert!(site.has(DEPLOYMENTS, "web"));
    site.cluster.api.delete(&format!("{PODS}/held"));
    eventually("the set goes", || !site.has(SETS, "web-1")).await;
    eventually("the deployment goes", || !site.has(DEPLOYMENTS, "web")).await;
}

#[tokio::test(start_paused = true)]
async fn orphans_are_released_and_stay() {
    let site = start(FakeCluster::new());
    site.put(SETS, "web", &[]);
    site.put(PODS, "web-a", &[owner("ReplicaSet", "web")]);
    site.at_work().await;
    site.delete(SETS, "web", "Orphan");
    eventually("the set goes", || !site.has(SETS, "web")).await;
    assert_eq!(
        site.object(PODS, "web-a")["metadata"]["ownerReferences"],
        json!([])
    );
}

#[tokio::test(start_paused = true)]
async fn an_owner_of_another_namespace_is_told_and_counts_as_absent() {
    let site = start(FakeCluster::new());
    let elsewhere = "/apis/apps/v1/namespaces/other/replicasets";
    site.put(elsewhere, "far", &[]);
    site.at_work().await;
    site.put(PODS, "astray", &[owner("ReplicaSet", "far")]);
    eventually("the pod goes", || !site.has(PODS, "astray")).await;
    eventually("it is told", || {
        let events = site.cluster.api.objects("/api/v1/events");
        events.iter().any(|event| {
            event["reason"] == "OwnerRefInvalidNamespace"
                && event["message"]
                    == "ownerRef [apps/v1/ReplicaSet, namespace: default, name: far, uid: uid-far] \
                        does not exist in namespace \"default\""
        })
    })
    .await;
    assert!(site.has(elsewhere, "far"));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_nobody_knows_keeps_its_dependents() {
    let site = start(FakeCluster::new());
    let mut unknown = owner("Widget", "w");
    unknown["apiVersion"] = json!("example.com/v1");
    site.put(PODS, "kept", &[unknown]);
    site.at_work().await;
    assert!(site.has(PODS, "kept"));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_objects_of_a_kind_that_is_served_no_more() {
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let cluster = FakeCluster::new();
    let is_gone = Arc::new(AtomicBool::new(false));
    let hidden = Arc::clone(&is_gone);
    cluster.on_request(move |_, path| {
        let is_hidden = hidden.load(Ordering::SeqCst) && path.trim_end_matches('/') == "/apis";
        is_hidden.then(|| (200, json!({"groups": []})))
    });
    let site = start(cluster);
    site.put(MAPS, "base", &[]);
    let mut base = owner("ConfigMap", "base");
    base["apiVersion"] = json!("v1");
    site.put(SETS, "web", &[base]);
    site.put(PODS, "web-a", &[owner("ReplicaSet", "web")]);
    site.at_work().await;
    is_gone.store(true, Ordering::SeqCst);
    tokio::time::sleep(2 * DISCOVERY_PERIOD).await;
    site.delete(MAPS, "base", "Foreground");
    eventually("the owner goes", || !site.has(MAPS, "base")).await;
    tokio::time::sleep(2 * UNKNOWN_RECHECK).await;
    assert!(
        site.has(SETS, "web") && site.has(PODS, "web-a"),
        "who knows"
    );
    is_gone.store(false, Ordering::SeqCst);
    eventually("the set goes", || !site.has(SETS, "web")).await;
    eventually("its pod goes", || !site.has(PODS, "web-a")).await;
}
