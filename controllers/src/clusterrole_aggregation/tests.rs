//! The loop applies gathered rules under upstream's field manager, and follows changes.

use super::*;
use crate::Config;
use crate::fake_api::FakeApi;
use coracle_client::clock::Clock;
use coracle_client::informer::Informers;
use serde_json::Value;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

fn part(api: &FakeApi, name: &str, verb: &str) {
    let role = json!({
        "metadata": { "name": name, "labels": { "to-whole": "true" } },
        "rules": [{ "verbs": [verb], "apiGroups": [""], "resources": ["pods"] }],
    });
    api.put(&format!("{ROLES}/{name}"), role);
}

/// Waits until `whole` has rules of exactly these verbs.
async fn until(api: &FakeApi, wanted: &[&str]) {
    let looked = async {
        loop {
            let whole = api.get(&format!("{ROLES}/whole")).unwrap();
            let rules = whole["rules"].as_array().cloned().unwrap_or_default();
            let verbs: Vec<&str> = rules
                .iter()
                .filter_map(|rule| rule["verbs"][0].as_str())
                .collect();
            if verbs == wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), looked)
        .await
        .unwrap_or_else(|_| panic!("{wanted:?}: {:?}", api.get(&format!("{ROLES}/whole"))));
}

#[tokio::test(start_paused = true)]
async fn an_aggregated_role_follows_what_it_is_gathered_from() {
    let api = FakeApi::new();
    part(&api, "b", "get");
    let whole = json!({
        "metadata": { "name": "whole" },
        "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { "to-whole": "true" } }] },
        "rules": Value::Null,
    });
    api.put(&format!("{ROLES}/whole"), whole);
    let shutdown = CancellationToken::new();
    let context = Context {
        client: api.client(),
        informers: Informers::new(api.client(), shutdown.clone()),
        config: Arc::new(Config::default()),
        clock: Clock::system(),
        shutdown: shutdown.clone(),
    };
    let running = tokio::spawn(run(context));
    until(&api, &["get"]).await;
    part(&api, "a", "list");
    until(&api, &["list", "get"]).await;
    api.delete(&format!("{ROLES}/b"));
    until(&api, &["list"]).await;
    let applied = format!("PATCH {ROLES}/whole");
    let written = api.requests().into_iter().filter(|one| *one == applied);
    assert_eq!(written.count(), 3, "once a change");
    shutdown.cancel();
    running.await.unwrap();
}
