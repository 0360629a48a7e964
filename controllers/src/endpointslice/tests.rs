//! The loop against a server in memory: what is written when, and what is mended.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio_util::sync::DropGuard;

use super::*;
use crate::Config;
use crate::endpoint_slices::{MANAGED_BY, SERVICE_NAME};
use crate::fake_api::eventually;
use crate::fake_cluster::{FakeCluster, failure, spawn};

const SLICES: &str = "/apis/discovery.k8s.io/v1/endpointslices";
const IN_DEFAULT: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

struct Site {
    cluster: FakeCluster,
    _running: DropGuard,
}

fn start(cluster: FakeCluster) -> Site {
    let _running = spawn(cluster.client(), Config::default(), run);
    Site { cluster, _running }
}

fn cluster() -> FakeCluster {
    let cluster = FakeCluster::new();
    cluster.api.put("/api/v1/nodes/n", json!({}));
    cluster
}

impl Site {
    /// Addresses, each with a plus when it is ready, of all slices.
    fn endpoints(&self) -> Vec<String> {
        let slices = self.cluster.api.objects(SLICES);
        let endpoints = slices.iter().flat_map(|slice| {
            let endpoints = slice["endpoints"].as_array().cloned();
            endpoints.unwrap_or_default()
        });
        let shown = endpoints.map(|endpoint| {
            let ready = endpoint["conditions"]["ready"] == json!(true);
            let address = endpoint["addresses"][0].as_str().unwrap().to_owned();
            address + if ready { "+" } else { "" }
        });
        let mut shown: Vec<String> = shown.collect();
        shown.sort();
        shown
    }

    async fn has(&self, wanted: &[&str]) {
        eventually(&format!("endpoints {wanted:?}"), || {
            self.endpoints() == wanted
        })
        .await;
    }

    fn only_slice(&self) -> Value {
        let mut slices = self.cluster.api.objects(SLICES);
        assert_eq!(slices.len(), 1, "{slices:?}");
        slices.remove(0)
    }

    fn events(&self) -> Vec<Value> {
        self.cluster.api.objects("/api/v1/events")
    }
}

#[tokio::test(start_paused = true)]
async fn slices_follow_pods() {
    let cluster = cluster();
    cluster.put_pod("a", "10.0.0.1", true);
    let site = start(cluster);
    site.cluster.put_service();
    site.has(&["10.0.0.1+"]).await;
    let slice = site.only_slice();
    assert_eq!(slice["metadata"]["name"], "web-0");
    let annotation = &slice["metadata"]["annotations"][crate::services::LAST_CHANGE];
    assert_eq!(*annotation, "2029-12-31T00:00:00Z");
    site.cluster.put_pod("b", "10.0.0.2", false);
    site.has(&["10.0.0.1+", "10.0.0.2"]).await;
    site.cluster.put_pod("b", "10.0.0.2", true);
    site.has(&["10.0.0.1+", "10.0.0.2+"]).await;
    let annotation = site.only_slice()["metadata"]["annotations"].clone();
    assert_eq!(annotation[crate::services::LAST_CHANGE], Value::Null);
    site.cluster.api.delete("/api/v1/namespaces/default/pods/a");
    site.has(&["10.0.0.2+"]).await;
    // A pod that is none of the Service's changes nothing.
    let stranger = json!({"metadata": {"labels": {"app": "db"}}, "spec": {"nodeName": "n"},
                          "status": {"podIPs": [{"ip": "10.0.0.9"}]}});
    site.cluster
        .api
        .put("/api/v1/namespaces/default/pods/c", stranger);
    // The label that chose it is gone.
    let mut pod = site
        .cluster
        .api
        .get("/api/v1/namespaces/default/pods/b")
        .unwrap();
    pod["metadata"]["labels"] = json!({});
    site.cluster
        .api
        .put("/api/v1/namespaces/default/pods/b", pod);
    site.has(&[]).await;
    assert_eq!(site.only_slice()["metadata"]["name"], "web-0");
}

#[tokio::test(start_paused = true)]
async fn what_others_did_to_slices_is_mended() {
    let cluster = cluster();
    cluster.put_pod("a", "10.0.0.1", true);
    cluster.put_service();
    let site = start(cluster);
    site.has(&["10.0.0.1+"]).await;
    let path = format!("{IN_DEFAULT}/web-0");
    let mut slice = site.only_slice();
    slice["endpoints"] = json!([{"addresses": ["10.6.6.6"], "conditions": {"ready": true}}]);
    slice["metadata"]["generation"] = json!(9);
    site.cluster.api.put(&path, slice);
    site.has(&["10.0.0.1+"]).await;
    site.cluster.api.delete(&path);
    site.has(&["10.0.0.1+"]).await;
    // What another controller manages is left alone.
    let foreign = json!({
        "metadata": {"labels": {SERVICE_NAME: "web", MANAGED_BY: "they"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.7.7.7"]}],
    });
    site.cluster
        .api
        .put(&format!("{IN_DEFAULT}/theirs"), foreign);
    site.cluster.put_pod("b", "10.0.0.2", true);
    site.has(&["10.0.0.1+", "10.0.0.2+", "10.7.7.7"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_lags_makes_no_second_slice() {
    let cluster = cluster();
    cluster.put_pod("a", "10.0.0.1", true);
    let made = Arc::new(AtomicUsize::new(0));
    let counted = made.clone();
    cluster.on_request(move |method, path| {
        let is_made = *method == http::Method::POST && path == IN_DEFAULT;
        counted.fetch_add(usize::from(is_made), Ordering::SeqCst);
        None
    });
    let site = start(cluster);
    site.cluster.put_service();
    site.has(&["10.0.0.1+"]).await;
    // As a watch that starts over: nothing is told for a while, and much happens.
    for number in 2..30 {
        site.cluster.api.break_watches();
        site.cluster
            .put_pod(&format!("p{number}"), &format!("10.0.0.{number}"), true);
        tokio::task::yield_now().await;
    }
    eventually("all are there", || site.endpoints().len() == 29).await;
    assert_eq!(made.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_slice_that_a_finalizer_holds_is_made_anew_at_once() {
    let cluster = cluster();
    cluster.put_pod("a", "10.0.0.1", true);
    cluster.put_service();
    let site = start(cluster);
    site.has(&["10.0.0.1+"]).await;
    let mut slice = site.only_slice();
    slice["metadata"]["finalizers"] = json!(["example.com/hold"]);
    slice["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:01Z");
    slice["metadata"]["generation"] = json!(2);
    site.cluster.api.put(&format!("{IN_DEFAULT}/web-0"), slice);
    let dying_since = tokio::time::Instant::now();
    eventually("there is another", || {
        site.cluster
            .api
            .get(&format!("{IN_DEFAULT}/web-1"))
            .is_some()
    })
    .await;
    let waited = dying_since.elapsed();
    assert!(waited < 2 * FOREIGN_CHANGE_WAIT, "{waited:?}");
    assert_eq!(site.endpoints(), ["10.0.0.1+", "10.0.0.1+"]);
}

#[tokio::test(start_paused = true)]
async fn services_without_pods_of_their_own_are_left_alone() {
    let cluster = cluster();
    cluster.put_pod("a", "10.0.0.1", true);
    let path = |name: &str| format!("/api/v1/namespaces/default/services/{name}");
    let none = json!({"spec": {"clusterIP": "10.43.0.8", "ports": [{"port": 80}]}});
    cluster.api.put(&path("none"), none);
    let external = json!({"spec": {"type": "ExternalName", "selector": {"app": "web"},
                                   "externalName": "example.org"}});
    cluster.api.put(&path("external"), external);
    let site = start(cluster);
    site.cluster.put_service();
    site.has(&["10.0.0.1+"]).await;
    assert_eq!(site.only_slice()["metadata"]["labels"][SERVICE_NAME], "web");
}

#[tokio::test(start_paused = true)]
async fn a_missing_node_is_told_and_looked_for_again() {
    let cluster = FakeCluster::new();
    cluster.put_pod("a", "10.0.0.1", true);
    cluster.put_service();
    let site = start(cluster);
    eventually("an event", || !site.events().is_empty()).await;
    let event = &site.events()[0];
    assert_eq!(event["reason"], "FailedToUpdateEndpointSlices");
    assert_eq!(event["source"]["component"], "endpoint-slice-controller");
    assert_eq!(
        event["message"],
        "Error updating Endpoint Slices for Service default/web: skipping Pod a for Service \
         default/web: Node n Not Found"
    );
    assert_eq!(site.endpoints(), [""; 0]);
    site.cluster.api.put("/api/v1/nodes/n", json!({}));
    site.has(&["10.0.0.1+"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_is_told_and_tried_again() {
    let cluster = cluster();
    cluster.put_pod("a", "10.0.0.1", true);
    let mut refusals = 2;
    cluster.on_request(move |method, path| {
        let hit = refusals > 0 && *method == http::Method::POST && path == IN_DEFAULT;
        refusals -= usize::from(hit);
        hit.then(|| (500, failure(500, "Refused")))
    });
    let site = start(cluster);
    site.cluster.put_service();
    site.has(&["10.0.0.1+"]).await;
    eventually("an event", || !site.events().is_empty()).await;
    let message = site.events()[0]["message"].as_str().unwrap().to_owned();
    assert!(
        message.ends_with("failed to create EndpointSlice for Service default/web: Refused"),
        "{message}"
    );
}
