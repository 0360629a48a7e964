//! The loop against a server in memory.

use serde_json::{Value, json};
use tokio_util::sync::DropGuard;

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{FakeCluster, WEB, failure, spawn};

const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints";

struct Site {
    cluster: FakeCluster,
    _running: DropGuard,
}

fn start(cluster: FakeCluster) -> Site {
    let _running = spawn(cluster.client(), Config::default(), run);
    Site { cluster, _running }
}

impl Site {
    fn get(&self, name: &str) -> Option<Value> {
        self.cluster.api.get(&format!("{ENDPOINTS}/{name}"))
    }

    /// Ready addresses and others.
    async fn has(&self, ready: &[&str], not_ready: &[&str]) {
        let listed = |subset: &Value, field: &str| -> Vec<String> {
            let all = subset[field].as_array().cloned().unwrap_or_default();
            let ips = all.iter().map(|one| one["ip"].as_str().unwrap().to_owned());
            ips.collect()
        };
        eventually(&format!("{ready:?} and {not_ready:?}"), || {
            self.get("web").is_some_and(|endpoints| {
                let subset = &endpoints["subsets"][0];
                listed(subset, "addresses") == ready
                    && listed(subset, "notReadyAddresses") == not_ready
            })
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn endpoints_follow_pods_and_go_with_their_service() {
    let site = start(FakeCluster::new());
    site.cluster.put_service();
    eventually("there are Endpoints", || site.get("web").is_some()).await;
    site.cluster.put_pod("a", "10.0.0.1", true);
    site.cluster.put_pod("b", "10.0.0.2", false);
    site.has(&["10.0.0.1"], &["10.0.0.2"]).await;
    site.cluster.put_pod("a", "10.0.0.1", false);
    site.has(&[], &["10.0.0.1", "10.0.0.2"]).await;
    // Somebody deletes them.
    site.cluster.api.delete(&format!("{ENDPOINTS}/web"));
    site.has(&[], &["10.0.0.1", "10.0.0.2"]).await;
    site.cluster.api.delete(WEB);
    eventually("they are gone", || site.get("web").is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_left_over_goes_but_not_what_elects() {
    let cluster = FakeCluster::new();
    let path = |name: &str| format!("{ENDPOINTS}/{name}");
    cluster.api.put(&path("left"), json!({"subsets": []}));
    let annotations = json!({ LEADER: "{}" });
    let elects = json!({"metadata": {"annotations": annotations}});
    cluster.api.put(&path("elects"), elects);
    let own = json!({"spec": {"clusterIP": "10.43.0.8"}});
    cluster
        .api
        .put("/api/v1/namespaces/default/services/own", own);
    cluster.api.put(&path("own"), json!({"subsets": []}));
    let site = start(cluster);
    eventually("what was left over is gone", || site.get("left").is_none()).await;
    site.cluster.put_service();
    site.cluster.put_pod("a", "10.0.0.1", true);
    site.has(&["10.0.0.1"], &[]).await;
    assert!(site.get("elects").is_some() && site.get("own").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_is_told_and_tried_again() {
    let cluster = FakeCluster::new();
    let mut refusals = 1;
    cluster.on_request(move |method, path| {
        let hit = refusals > 0 && *method == http::Method::POST && path == ENDPOINTS;
        refusals -= usize::from(hit);
        hit.then(|| (500, failure(500, "Refused")))
    });
    let site = start(cluster);
    site.cluster.put_service();
    eventually("there are Endpoints", || site.get("web").is_some()).await;
    let events = || site.cluster.api.objects("/api/v1/events");
    eventually("an event", || !events().is_empty()).await;
    let event = &events()[0];
    assert_eq!(event["reason"], "FailedToCreateEndpoint");
    assert_eq!(event["involvedObject"]["kind"], "Endpoints");
    assert_eq!(
        event["message"],
        "Failed to create endpoint for service default/web: Refused"
    );
}
