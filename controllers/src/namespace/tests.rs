//! The loop against a cluster in memory.

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{FakeCluster, failure, spawn};
use http::Method;
use serde_json::{Value, json};
use tokio_util::sync::DropGuard;

fn start(cluster: &FakeCluster) -> DropGuard {
    spawn(cluster.client(), Config::default(), run)
}

fn put_namespace(cluster: &FakeCluster, name: &str) {
    let namespace = json!({"spec": {"finalizers": ["kubernetes"]}, "metadata": {}});
    cluster
        .api
        .put(&format!("/api/v1/namespaces/{name}"), namespace);
}

fn condition(cluster: &FakeCluster, name: &str, type_: &str) -> Value {
    let namespace = cluster.api.get(&format!("/api/v1/namespaces/{name}"));
    let conditions = namespace.unwrap_or_default()["status"]["conditions"].clone();
    let mut all = conditions.as_array().cloned().unwrap_or_default();
    all.retain(|one| one["type"] == type_);
    all.pop().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_is_emptied_pods_first_and_goes() {
    let cluster = FakeCluster::new();
    for name in ["a", "b"] {
        put_namespace(&cluster, name);
        let at = |plural| format!("/api/v1/namespaces/{name}/{plural}/one");
        cluster.api.put(&at("configmaps"), json!({"metadata": {}}));
        cluster.api.put(&at("services"), json!({"metadata": {}}));
        let spec = json!({"containers": [], "terminationGracePeriodSeconds": 30});
        cluster
            .api
            .put(&at("pods"), json!({"metadata": {}, "spec": spec}));
    }
    let _running = start(&cluster);
    cluster.delete_as("/api/v1/namespaces/a", "Background");
    eventually("the pod is told of", || {
        condition(&cluster, "a", "NamespaceContentRemaining")["message"]
            == "Some resources are remaining: pods. has 1 resource instances"
    })
    .await;
    let fine = condition(&cluster, "a", "NamespaceDeletionContentFailure");
    assert_eq!(fine["status"], "False");
    assert_eq!(fine["reason"], "ContentDeleted");
    let namespace = cluster.api.get("/api/v1/namespaces/a").unwrap();
    assert_eq!(namespace["status"]["phase"], "Terminating");
    assert_eq!(cluster.api.objects("/api/v1/configmaps").len(), 2);

    let ended = tokio::time::Instant::now();
    cluster.api.delete("/api/v1/namespaces/a/pods/one");
    eventually("the namespace goes", || {
        cluster.api.get("/api/v1/namespaces/a").is_none()
    })
    .await;
    assert!(ended.elapsed() < Duration::from_secs(2), "{ended:?}");
    for collection in ["pods", "configmaps", "services"] {
        let left = cluster.api.objects(&format!("/api/v1/{collection}"));
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!(left[0]["metadata"]["namespace"], "b");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_else_goes_while_pods_cannot_be_deleted() {
    let cluster = FakeCluster::new();
    put_namespace(&cluster, "a");
    let at = |plural| format!("/api/v1/namespaces/a/{plural}/one");
    cluster.api.put(&at("configmaps"), json!({"metadata": {}}));
    let spec = json!({"containers": [], "terminationGracePeriodSeconds": 30});
    let pod = json!({"metadata": {}, "spec": spec});
    cluster.api.put(&at("pods"), pod);
    cluster.on_request(|method, path| {
        let is_refused = *method == Method::DELETE && path == "/api/v1/namespaces/a/pods";
        is_refused.then(|| (500, failure(500, "InternalError")))
    });
    let _running = start(&cluster);
    cluster.delete_as("/api/v1/namespaces/a", "Background");
    eventually("the failure is told of", || {
        condition(&cluster, "a", "NamespaceDeletionContentFailure")["status"] == "True"
    })
    .await;
    assert_eq!(cluster.api.objects("/api/v1/configmaps").len(), 1);

    cluster.api.delete(&at("pods"));
    eventually("the namespace goes", || {
        cluster.api.get("/api/v1/namespaces/a").is_none()
    })
    .await;
    assert!(cluster.api.objects("/api/v1/configmaps").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_is_told_and_waited_for() {
    let cluster = FakeCluster::new();
    put_namespace(&cluster, "a");
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    cluster
        .api
        .put("/api/v1/namespaces/a/configmaps/held", held);
    let _running = start(&cluster);
    cluster.delete_as("/api/v1/namespaces/a", "Background");
    eventually("the finalizer is told of", || {
        condition(&cluster, "a", "NamespaceFinalizersRemaining")["message"]
            == "Some content in the namespace has finalizers remaining: \
                example.com/hold in 1 resource instances"
    })
    .await;
    cluster.api.delete("/api/v1/namespaces/a/configmaps/held");
    eventually("the namespace goes", || {
        cluster.api.get("/api/v1/namespaces/a").is_none()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn another_finalizer_of_the_spec_is_left_alone() {
    let cluster = FakeCluster::new();
    let namespace =
        json!({"spec": {"finalizers": ["kubernetes", "example.com/x"]}, "metadata": {}});
    cluster.api.put("/api/v1/namespaces/a", namespace);
    let _running = start(&cluster);
    cluster.delete_as("/api/v1/namespaces/a", "Background");
    eventually("ours is removed", || {
        let namespace = cluster.api.get("/api/v1/namespaces/a").unwrap_or_default();
        namespace["spec"]["finalizers"] == json!(["example.com/x"])
    })
    .await;
}
