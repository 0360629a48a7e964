//! The whole loop against a server in memory, over days.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{FakeCluster, failure, spawn};

const OLD: &str = "/api/v1/namespaces/default/secrets/old";
const MAP: &str = "/api/v1/namespaces/kube-system/configmaps/\
                   kube-apiserver-legacy-service-account-token-tracking";

/// From the start of 2030 on.
fn cluster() -> FakeCluster {
    let cluster = FakeCluster::new();
    let account = json!({ "secrets": [{ "name": "old" }] });
    cluster
        .api
        .put("/api/v1/namespaces/default/serviceaccounts/bot", account);
    let secret = json!({
        "metadata": {
            "creationTimestamp": "2020-01-01T00:00:00Z",
            "annotations": { "kubernetes.io/service-account.name": "bot" },
        },
        "type": "kubernetes.io/service-account-token",
    });
    cluster.api.put(OLD, secret);
    cluster
}

fn mark(cluster: &FakeCluster) -> Value {
    let secret = cluster.api.get(OLD).unwrap();
    secret["metadata"]["labels"][plan::INVALID_SINCE].clone()
}

fn days(count: u64) -> Duration {
    Duration::from_hours(24 * count)
}

#[tokio::test(start_paused = true)]
async fn a_token_is_marked_when_its_time_is_over_and_goes_when_it_is_over_again() {
    let cluster = cluster();
    cluster
        .api
        .put(MAP, json!({ "data": { "since": "2029-12-31" } }));
    let config = Config {
        legacy_token_clean_up_period: days(1),
        ..Config::default()
    };
    let _running = spawn(cluster.client(), config, run);
    tokio::time::sleep(Duration::from_hours(23)).await;
    assert_eq!(mark(&cluster), Value::Null, "uses are noted for too short");
    tokio::time::sleep(Duration::from_hours(2)).await;
    eventually("marked", || mark(&cluster) == "2030-01-02").await;
    tokio::time::sleep(days(1)).await;
    assert_eq!(mark(&cluster), "2030-01-02", "it stays for a day");
    tokio::time::sleep(days(1)).await;
    eventually("gone", || cluster.api.get(OLD).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_is_used_at_the_last_moment_is_looked_at_anew() {
    let cluster = cluster();
    cluster
        .api
        .put(MAP, json!({ "data": { "since": "2020-01-01" } }));
    let used = cluster.clone();
    cluster.on_request(move |method, path| {
        let is_first = *method == http::Method::PATCH && path == OLD;
        let is_first = is_first && mark_of_use(&used).is_null();
        is_first.then(|| {
            let mut secret = used.api.get(OLD).unwrap();
            secret["metadata"]["labels"] = json!({ LAST_USED: "2030-01-01" });
            used.api.put(OLD, secret);
            (409, failure(409, "Conflict"))
        })
    });
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("used", || !mark_of_use(&cluster).is_null()).await;
    tokio::time::sleep(2 * LOOK_AGAIN).await;
    assert_eq!(mark(&cluster), Value::Null);
    let history = cluster.api.history();
    let writes = history.iter().filter(|(_, kind, _)| *kind == "MODIFIED");
    assert_eq!(writes.count(), 1, "the use");
}

const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";

fn mark_of_use(cluster: &FakeCluster) -> Value {
    let secret = cluster.api.get(OLD).unwrap();
    secret["metadata"]["labels"][LAST_USED].clone()
}

#[tokio::test(start_paused = true)]
async fn where_nobody_says_since_when_uses_are_noted_nothing_is_done() {
    let cluster = cluster();
    let _running = spawn(cluster.client(), Config::default(), run);
    tokio::time::sleep(days(1)).await;
    assert_eq!(mark(&cluster), Value::Null);
    cluster
        .api
        .put(MAP, json!({ "data": { "since": "2020-01-01" } }));
    tokio::time::sleep(days(1)).await;
    eventually("marked", || !mark(&cluster).is_null()).await;
}
