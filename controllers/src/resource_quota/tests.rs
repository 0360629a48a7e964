//! The loop against a cluster in memory.

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::FakeCluster;
use coracle_client::clock::Clock;
use coracle_client::informer::Informers;
use serde_json::{Value, json};

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

mod tallies; // The pure part.

struct Site {
    cluster: FakeCluster,
    shutdown: CancellationToken,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

fn site() -> Site {
    let cluster = FakeCluster::new();
    let shutdown = CancellationToken::new();
    let context = Context {
        client: cluster.client(),
        informers: Informers::new(cluster.client(), shutdown.clone()),
        config: Arc::new(Config::default()),
        clock: Clock::starting_at("2030-01-01T00:00:00Z".parse().unwrap()),
        shutdown: shutdown.clone(),
    };
    tokio::spawn(run(context));
    Site { cluster, shutdown }
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
        let wanted = format!("WATCH /api/v1/{plural}");
        let requests = self.cluster.api.requests();
        requests.iter().filter(|one| **one == wanted).count()
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
    site.quota(json!({ "configmaps": "1" }));
    site.uses(json!({ "configmaps": "0" })).await;
    // As admission does it: the object and its charge. Between the two the loop may count.
    for name in ["a", "b", "c"] {
        site.put(MAPS, name, json!({}));
        let mut quota = site.cluster.api.get(&format!("{QUOTAS}/q")).unwrap();
        quota["metadata"]["labels"] = json!({ "touched": name });
        site.put(QUOTAS, "q", quota);
        site.put(PODS, name, pod("1"));
        site.cluster.api.delete(&format!("{PODS}/{name}"));
    }
    site.cluster.api.delete(&format!("{MAPS}/a"));
    site.uses(json!({ "configmaps": "2" })).await;
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
