//! The loop against a cluster in memory.

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{FakeCluster, failure, spawn};
use http::Method;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio_util::sync::DropGuard;

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

mod tallies; // The pure part.

struct Site {
    cluster: FakeCluster,
    _running: DropGuard,
}

fn site() -> Site {
    let cluster = FakeCluster::new();
    let _running = spawn(cluster.client(), Config::default(), run);
    Site { cluster, _running }
}

fn pod(cpu: &str) -> Value {
    json!({ "spec": { "containers": [
        { "name": "c", "resources": { "requests": { "cpu": cpu } } },
    ] } })
}

impl Site {
    fn put(&self, collection: &str, name: &str, object: Value) {
        self.cluster
            .api
            .put(&format!("{collection}/{name}"), object);
    }

    fn quota(&self, hard: Value) {
        self.put(QUOTAS, "q", json!({ "spec": { "hard": hard } }));
    }

    fn status(&self) -> Value {
        let quota = self.cluster.api.get(&format!("{QUOTAS}/q"));
        quota.unwrap_or_default()["status"].clone()
    }

    async fn uses(&self, used: Value) {
        eventually(&format!("{used} are used"), || {
            self.status()["used"] == used
        })
        .await;
    }

    fn watched(&self, plural: &str) -> usize {
        self.asked(&format!("WATCH /api/v1/{plural}"))
    }

    /// How often; method (or `WATCH`) and path.
    fn asked(&self, request: &str) -> usize {
        let requests = self.cluster.api.requests();
        requests.iter().filter(|one| *one == request).count()
    }
}

#[tokio::test(start_paused = true)]
async fn a_quota_comes_into_force_with_what_is_there() {
    let site = site();
    site.put(PODS, "a", pod("100m"));
    site.put(PODS, "b", pod("200m"));
    site.put("/api/v1/namespaces/other/pods", "c", pod("1"));
    site.put(MAPS, "m", json!({}));
    site.put(DEPLOYMENTS, "d", json!({}));
    let ports = json!([{ "port": 1 }]);
    site.put(
        SERVICES,
        "s",
        json!({ "spec": { "type": "NodePort", "ports": ports } }),
    );
    let hard = json!({
        "pods": "5", "requests.cpu": "1", "configmaps": "1", "count/deployments.apps": "1",
        "services.nodeports": "2", "services.loadbalancers": "1", "count/unknown": "1",
    });
    site.quota(hard.clone());
    site.uses(json!({
        "pods": "2", "requests.cpu": "300m", "configmaps": "1", "count/deployments.apps": "1",
        "services.nodeports": "1", "services.loadbalancers": "0",
    }))
    .await;
    assert_eq!(site.status()["hard"], hard);
}

/// Until a discovery succeeds nobody can tell a kind that is not there from one that is.
#[tokio::test(start_paused = true)]
async fn a_quota_waits_for_a_discovery_that_failed() {
    let hard = json!({ "count/deployments.apps": "1" });
    for broken in ["/apis", "/apis/apps/v1"] {
        let site = site();
        let is_up = Arc::new(AtomicBool::new(false));
        let refused = Arc::new(AtomicUsize::new(0));
        site.cluster.on_request({
            let (is_up, refused) = (Arc::clone(&is_up), Arc::clone(&refused));
            move |_, path| {
                let is_broken = path == broken && !is_up.load(Ordering::Relaxed);
                is_broken.then(|| {
                    refused.fetch_add(1, Ordering::Relaxed);
                    (503, failure(503, "ServiceUnavailable"))
                })
            }
        });
        site.put(DEPLOYMENTS, "d", json!({}));
        site.quota(hard.clone());
        eventually("asked some times", || refused.load(Ordering::Relaxed) > 3).await;
        assert_eq!(site.status(), Value::Null, "without {broken}");
        is_up.store(true, Ordering::Relaxed);
        eventually("in force", || site.status()["hard"] == hard).await;
        let used = site.status()["used"].clone();
        assert_eq!(used, json!({ "count/deployments.apps": "1" }));
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_that_cannot_be_discovered_holds_up_no_quota_on_others() {
    let site = site();
    site.cluster.on_request(|_, path| {
        (path == "/apis/apps/v1").then(|| (503, failure(503, "ServiceUnavailable")))
    });
    site.quota(json!({ "configmaps": "1", "count/unknown": "1" }));
    site.uses(json!({ "configmaps": "0" })).await;
}

/// Beside what the server has anyway.
fn claims_of_devices(path: &str) -> Option<(u16, Value)> {
    let group = "resource.k8s.io/v1";
    match path {
        "/apis" => {
            let version = json!({ "groupVersion": group, "version": "v1" });
            let group = json!({ "name": "resource.k8s.io", "versions": [version] });
            Some((200, json!({ "groups": [group] })))
        }
        "/apis/resource.k8s.io/v1" => {
            let verbs = ["create", "delete", "list", "watch"];
            let claims = json!({ "name": "resourceclaims", "singularName": "",
                "kind": "ResourceClaim", "namespaced": true, "verbs": verbs });
            Some((200, json!({ "groupVersion": group, "resources": [claims] })))
        }
        _ => None,
    }
}

/// Pods use extended resources and so may claims, by classes that nobody announces.
#[tokio::test(start_paused = true)]
async fn claims_of_devices_are_watched_whatever_the_classes_are() {
    const CLASSES: &str = "/apis/resource.k8s.io/v1/deviceclasses";
    let site = site();
    let classes_fail = Arc::new(AtomicBool::new(true));
    site.cluster.on_request({
        let classes_fail = Arc::clone(&classes_fail);
        move |_, path| {
            let fails = path == CLASSES && classes_fail.load(Ordering::Relaxed);
            let failed = fails.then(|| (503, failure(503, "ServiceUnavailable")));
            failed.or_else(|| claims_of_devices(path))
        }
    });
    site.quota(json!({ "requests.example.com/gpu": "9" }));
    let watch = "WATCH /apis/resource.k8s.io/v1/resourceclaims";
    eventually("claims are watched", || site.asked(watch) > 0).await;
    classes_fail.store(false, Ordering::Relaxed);
    let offer = json!({ "spec": { "extendedResourceName": "example.com/gpu" } });
    site.put(CLASSES, "gpus", offer);
    let exactly = json!({ "deviceClassName": "gpus", "allocationMode": "ExactCount", "count": 2 });
    let devices = json!({ "requests": [{ "name": "r", "exactly": exactly }] });
    for name in ["a", "b"] {
        site.put(CLAIMS, name, json!({ "spec": { "devices": devices } }));
    }
    site.uses(json!({ "requests.example.com/gpu": "4" })).await;
    site.cluster.api.delete(&format!("{CLAIMS}/a"));
    site.uses(json!({ "requests.example.com/gpu": "2" })).await;
}

#[tokio::test(start_paused = true)]
async fn pods_are_read_only_for_claims_that_stand_for_their_extended_resources() {
    const COUNT: &str = "count/resourceclaims.resource.k8s.io";
    let site = site();
    site.cluster.on_request(|_, path| claims_of_devices(path));
    let claim = |annotations: Value| {
        let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u",
            "controller": true });
        json!({ "metadata": { "annotations": annotations, "ownerReferences": [owner] },
            "spec": {} })
    };
    for name in ["a", "b"] {
        site.put(CLAIMS, name, claim(json!({})));
    }
    site.quota(json!({ COUNT: "9" }));
    site.uses(json!({ COUNT: "2" })).await;
    let pods = format!("GET {PODS}");
    assert_eq!(site.asked(&pods), 0);
    let extended = json!({ "resource.kubernetes.io/extended-resource-claim": "true" });
    site.put(CLAIMS, "b", claim(extended));
    eventually("pods are looked at", || site.asked(&pods) > 0).await;
}

#[tokio::test(start_paused = true)]
async fn what_goes_away_is_given_back() {
    let site = site();
    for name in ["a", "b", "c"] {
        site.put(PODS, name, pod("1"));
        site.put(MAPS, name, json!({}));
    }
    let ports = json!([{ "port": 1 }]);
    let service = |kind: &str| json!({ "spec": { "type": kind, "ports": ports } });
    site.put(SERVICES, "s", service("NodePort"));
    site.quota(json!({ "cpu": "9", "count/configmaps": "9", "services.nodeports": "9" }));
    let used = |cpu: &str, maps: &str, ports: &str| json!({ "cpu": cpu, "count/configmaps": maps, "services.nodeports": ports });
    site.uses(used("3", "3", "1")).await;
    site.cluster.api.delete(&format!("{PODS}/a"));
    site.uses(used("2", "3", "1")).await;
    let mut ended = pod("1");
    ended["status"] = json!({ "phase": "Succeeded" });
    site.put(PODS, "b", ended);
    site.uses(used("1", "3", "1")).await;
    site.cluster.api.delete(&format!("{MAPS}/a"));
    site.uses(used("1", "2", "1")).await;
    site.put(SERVICES, "s", service("ClusterIP"));
    site.uses(used("1", "2", "0")).await;
}

#[tokio::test(start_paused = true)]
async fn only_what_some_quota_counts_is_watched() {
    let site = site();
    site.quota(json!({ "configmaps": "1" }));
    site.uses(json!({ "configmaps": "0" })).await;
    eventually("configmaps are watched", || site.watched("configmaps") == 1).await;
    assert_eq!(site.watched("services"), 0);
    site.quota(json!({ "services": "1" }));
    site.uses(json!({ "services": "0" })).await;
    eventually("services are watched", || site.watched("services") == 1).await;
    // Nobody waits for config maps any more.
    site.cluster.api.break_watches();
    eventually("services are watched again", || {
        site.watched("services") == 2
    })
    .await;
    assert_eq!(site.watched("configmaps"), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_missed_over_a_broken_watch() {
    let site = site();
    site.put(MAPS, "a", json!({}));
    site.quota(json!({ "configmaps": "1" }));
    site.uses(json!({ "configmaps": "1" })).await;
    eventually("configmaps are watched", || site.watched("configmaps") == 1).await;
    site.cluster.api.break_watches();
    site.cluster.api.delete(&format!("{MAPS}/a"));
    site.cluster.api.compact();
    site.uses(json!({ "configmaps": "0" })).await;
}

#[tokio::test(start_paused = true)]
async fn a_count_that_was_overtaken_is_done_anew() {
    let site = site();
    for name in ["a", "b"] {
        site.put(MAPS, name, json!({}));
    }
    site.quota(json!({ "configmaps": "9" }));
    site.uses(json!({ "configmaps": "2" })).await;
    eventually("configmaps are watched", || site.watched("configmaps") == 1).await;
    tokio::time::sleep(SETTLE * 2).await;
    // As admission does it, objects and their charge in one commit: here between count and write.
    let writes = Arc::new(AtomicUsize::new(0));
    site.cluster.on_request({
        let (api, writes) = (site.cluster.api.clone(), Arc::clone(&writes));
        move |method, path| {
            let is_write = *method == Method::PUT && path.ends_with("/status");
            if is_write && writes.fetch_add(1, Ordering::Relaxed) == 0 {
                for name in ["c", "d"] {
                    api.put(&format!("{MAPS}/{name}"), json!({}));
                }
                let mut quota = api.get(&format!("{QUOTAS}/q")).unwrap();
                quota["status"]["used"] = json!({ "configmaps": "4" });
                api.put(&format!("{QUOTAS}/q"), quota);
            }
            None
        }
    });
    site.cluster.api.delete(&format!("{MAPS}/a"));
    // Long before everything is counted anew.
    let counted = site.uses(json!({ "configmaps": "3" }));
    let in_time = tokio::time::timeout(RESYNC_PERIOD / 2, counted).await;
    assert!(in_time.is_ok(), "the charge was lost: {}", site.status());
    assert_eq!(writes.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_somebody_changed_is_mended_in_time() {
    let site = site();
    let hard = json!({ "configmaps": "1" });
    site.quota(hard.clone());
    let right = json!({ "hard": hard, "used": { "configmaps": "0" } });
    eventually("counted", || site.status() == right).await;
    for wrong in [
        json!({ "hard": { "configmaps": "7" }, "used": { "configmaps": "0" } }),
        json!({ "hard": { "configmaps": "1" } }),
        json!({ "hard": { "configmaps": "1" }, "used": { "configmaps": "7" } }),
    ] {
        let mut quota = site.cluster.api.get(&format!("{QUOTAS}/q")).unwrap();
        quota["status"] = wrong.clone();
        site.put(QUOTAS, "q", quota);
        let mended = async {
            while site.status() != right {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let in_time = tokio::time::timeout(RESYNC_PERIOD * 2, mended).await;
        assert!(in_time.is_ok(), "{wrong} stayed");
    }
}
