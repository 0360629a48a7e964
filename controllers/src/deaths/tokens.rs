//! Tokens without an end, which old clusters made for each account.

use serde_json::{Value, json};

use super::{AT_ONCE, Step, Story, at, there};
use crate::Config;
use crate::fake_cluster::FakeCluster;
use crate::legacy_token_cleaner::NAME;

const ACCOUNT: &str = "/api/v1/namespaces/default/serviceaccounts/builder";
const TRACKING: &str = "/api/v1/namespaces/kube-system/configmaps/\
                        kube-apiserver-legacy-service-account-token-tracking";
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// The clock begins with the year 2030.
const TODAY: &str = "2030-01-01";
const LATELY: &str = "2029-12-24";
const LONG_AGO: &str = "2028-12-24";

fn token(name: &str) -> String {
    format!("/api/v1/namespaces/default/secrets/{name}")
}

fn put_token(cluster: &FakeCluster, name: &str, labels: &Value) {
    let secret = json!({
        "metadata": {
            "creationTimestamp": "2020-01-01T00:00:00Z",
            "labels": labels,
            "annotations": { "kubernetes.io/service-account.name": "builder" },
        },
        "type": "kubernetes.io/service-account-token",
    });
    cluster.api.put(&token(name), secret);
}

fn marked(cluster: &FakeCluster, name: &str) -> Value {
    at(cluster, &token(name), "/metadata/labels")[INVALID_SINCE].clone()
}

pub(super) static UNUSED: Story = Story {
    loops: &[NAME],
    config: Config::default,
    beat: None,
    writes_min: 4,
    names_vary: false,
    steps: &[Step {
        what: "those that nobody uses are marked, and those that are marked for long go",
        happens: |cluster| {
            let since = json!({ "data": { "since": "2028-12-01" } });
            cluster.api.put(TRACKING, since);
            let named = [
                "unused", "too", "marked", "over", "tried", "used", "mounted",
            ];
            let named: Vec<Value> = named.iter().map(|name| json!({ "name": name })).collect();
            cluster.api.put(ACCOUNT, json!({ "secrets": named }));
            let volumes = json!([{ "name": "v", "secret": { "secretName": "mounted" } }]);
            let pod = json!({ "spec": { "containers": [], "volumes": volumes } });
            cluster.api.put("/api/v1/namespaces/default/pods/p", pod);
            for name in ["unused", "too", "mounted", "manual"] {
                put_token(cluster, name, &json!({}));
            }
            put_token(cluster, "used", &json!({ LAST_USED: LATELY }));
            for name in ["marked", "over"] {
                put_token(cluster, name, &json!({ INVALID_SINCE: LONG_AGO }));
            }
            let tried = json!({ INVALID_SINCE: LONG_AGO, LAST_USED: LATELY });
            put_token(cluster, "tried", &tried);
        },
        takes: AT_ONCE,
        done: |cluster| {
            let stay = ["used", "mounted", "manual"];
            ["unused", "too"]
                .iter()
                .all(|name| marked(cluster, name) == TODAY)
                && ["marked", "over"]
                    .iter()
                    .all(|name| !there(cluster, &token(name)))
                && marked(cluster, "tried") == LONG_AGO
                && stay
                    .iter()
                    .all(|name| there(cluster, &token(name)) && marked(cluster, name).is_null())
        },
    }],
};
