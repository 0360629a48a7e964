//! What goes: namespaces, dependents, pods and jobs; and what is counted.

use std::time::Duration;

use serde_json::{Value, json};

use super::{AT_ONCE, Step, Story, at, put_namespace, there};
use crate::Config;
use crate::fake_cluster::FakeCluster;

fn fill(cluster: &FakeCluster, namespace: &str) {
    put_namespace(cluster, namespace);
    let path = |plural| format!("/api/v1/namespaces/{namespace}/{plural}/one");
    cluster
        .api
        .put(&path("configmaps"), json!({"metadata": {}}));
    cluster.api.put(&path("services"), json!({"metadata": {}}));
    let spec = json!({"containers": [], "terminationGracePeriodSeconds": 300});
    cluster
        .api
        .put(&path("pods"), json!({"metadata": {}, "spec": spec}));
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    cluster.api.put(
        &format!("/apis/apps/v1/namespaces/{namespace}/deployments/held"),
        held,
    );
}

fn remaining(cluster: &FakeCluster, namespace: &str, kind: &str) -> bool {
    let conditions = at(
        cluster,
        &format!("/api/v1/namespaces/{namespace}"),
        "/status/conditions",
    );
    let mut all = conditions.as_array().into_iter().flatten();
    all.any(|one| one["type"] == kind && one["status"] == "True")
}

pub(super) static NAMESPACES: Story = Story {
    loops: &["namespace"],
    config: Config::default,
    beat: None,
    writes_min: 10,
    names_vary: false,
    steps: &[
        Step {
            what: "two are being emptied",
            happens: |cluster| {
                ["a", "b", "c"].iter().for_each(|name| fill(cluster, name));
                cluster.delete_as("/api/v1/namespaces/a", "Background");
                cluster.delete_as("/api/v1/namespaces/b", "Background");
            },
            takes: AT_ONCE,
            done: |cluster| {
                ["a", "b"]
                    .iter()
                    .all(|name| remaining(cluster, name, "NamespaceContentRemaining"))
            },
        },
        Step {
            what: "what a finalizer holds is told of when the pods are gone",
            happens: |cluster| {
                cluster.api.delete("/api/v1/namespaces/a/pods/one");
                cluster.api.delete("/api/v1/namespaces/b/pods/one");
            },
            takes: AT_ONCE,
            done: |cluster| {
                ["a", "b"]
                    .iter()
                    .all(|name| remaining(cluster, name, "NamespaceFinalizersRemaining"))
                    && cluster.api.objects("/api/v1/configmaps").len() == 1
            },
        },
        Step {
            what: "one goes and comes back with things in it, which stay",
            happens: |cluster| {
                cluster
                    .api
                    .delete("/apis/apps/v1/namespaces/a/deployments/held");
                cluster.api.delete("/api/v1/namespaces/a");
                fill(cluster, "a");
                cluster
                    .api
                    .delete("/apis/apps/v1/namespaces/b/deployments/held");
            },
            takes: AT_ONCE,
            done: |cluster| {
                !there(cluster, "/api/v1/namespaces/b")
                    && there(cluster, "/api/v1/namespaces/a")
                    && cluster.api.objects("/api/v1/configmaps").len() == 2
                    && cluster.api.objects("/api/v1/pods").len() == 2
            },
        },
    ],
};

const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const DEFAULT_PODS: &str = "/api/v1/namespaces/default/pods";

fn owned(
    cluster: &FakeCluster,
    collection: &str,
    name: &str,
    uid: &str,
    owner: Option<(&str, &str, &str)>,
) {
    let read = |(kind, name, uid)| {
        json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid,
            "blockOwnerDeletion": true})
    };
    let owners: Vec<Value> = owner.map(read).into_iter().collect();
    let meta = json!({"uid": uid, "ownerReferences": owners});
    cluster
        .api
        .put(&format!("{collection}/{name}"), json!({"metadata": meta}));
}

/// A deployment with a set and a pod.
fn put_chain(cluster: &FakeCluster, name: &str) {
    let (set, pod) = (format!("{name}-1"), format!("{name}-1-a"));
    owned(cluster, DEPLOYMENTS, name, name, None);
    owned(cluster, SETS, &set, &set, Some(("Deployment", name, name)));
    owned(
        cluster,
        DEFAULT_PODS,
        &pod,
        &pod,
        Some(("ReplicaSet", &set, &set)),
    );
}

pub(super) static GARBAGE: Story = Story {
    loops: &["garbage-collector"],
    config: Config::default,
    beat: None,
    writes_min: 8,
    names_vary: false,
    steps: &[
        Step {
            what: "what has no owner goes",
            happens: |cluster| {
                ["web", "db", "log"]
                    .iter()
                    .for_each(|name| put_chain(cluster, name));
                owned(
                    cluster,
                    DEFAULT_PODS,
                    "stray",
                    "stray",
                    Some(("ReplicaSet", "gone", "gone")),
                );
                // Of its predecessor.
                owned(
                    cluster,
                    DEFAULT_PODS,
                    "older",
                    "older",
                    Some(("ReplicaSet", "web-1", "other")),
                );
                owned(cluster, DEFAULT_PODS, "free", "free", None);
            },
            takes: AT_ONCE,
            done: |cluster| cluster.api.objects("/api/v1/pods").len() == 4,
        },
        Step {
            what: "the chain goes from behind, and all of it",
            happens: |cluster| {
                cluster.delete_as(&format!("{DEPLOYMENTS}/web"), "Background");
                cluster.delete_as(&format!("{DEPLOYMENTS}/db"), "Foreground");
            },
            takes: AT_ONCE,
            done: |cluster| {
                cluster.api.objects("/apis/apps/v1/replicasets").len() == 1
                    && cluster.api.objects("/apis/apps/v1/deployments").len() == 1
                    && cluster.api.objects("/api/v1/pods").len() == 2
            },
        },
        Step {
            what: "orphans stay, also beside a successor",
            happens: |cluster| {
                cluster.delete_as(&format!("{SETS}/log-1"), "Orphan");
                owned(cluster, SETS, "web-1", "second", None);
                owned(
                    cluster,
                    DEFAULT_PODS,
                    "new",
                    "new",
                    Some(("ReplicaSet", "web-1", "second")),
                );
            },
            takes: AT_ONCE,
            done: |cluster| {
                !there(cluster, &format!("{SETS}/log-1"))
                    && there(cluster, &format!("{DEFAULT_PODS}/log-1-a"))
                    && there(cluster, &format!("{DEFAULT_PODS}/new"))
            },
        },
    ],
};

fn quota(name: &str) -> String {
    format!("/api/v1/namespaces/default/resourcequotas/{name}")
}

fn put_pod(cluster: &FakeCluster, name: &str, cpu: &str) {
    let resources = json!({"requests": {"cpu": cpu}});
    let pod = json!({"spec": {"containers": [{"name": "c", "resources": resources}]}});
    cluster.api.put(&format!("{DEFAULT_PODS}/{name}"), pod);
}

fn uses(cluster: &FakeCluster, name: &str, used: &Value) -> bool {
    at(cluster, &quota(name), "/status/used") == *used
}

pub(super) static QUOTAS: Story = Story {
    loops: &["resource-quota"],
    config: Config::default,
    beat: None,
    writes_min: 5,
    names_vary: false,
    steps: &[
        Step {
            what: "both count what is there",
            happens: |cluster| {
                put_pod(cluster, "a", "100m");
                put_pod(cluster, "b", "200m");
                let hard = json!({"pods": "5", "requests.cpu": "1"});
                cluster
                    .api
                    .put(&quota("p"), json!({"spec": {"hard": hard}}));
                let hard = json!({"configmaps": "1", "count/deployments.apps": "1"});
                cluster
                    .api
                    .put(&quota("q"), json!({"spec": {"hard": hard}}));
            },
            takes: AT_ONCE,
            done: |cluster| {
                uses(cluster, "p", &json!({"pods": "2", "requests.cpu": "300m"}))
                    && uses(
                        cluster,
                        "q",
                        &json!({"configmaps": "0", "count/deployments.apps": "0"}),
                    )
            },
        },
        Step {
            what: "what goes counts no more",
            happens: |cluster| {
                cluster.api.delete(&format!("{DEFAULT_PODS}/a"));
                cluster
                    .api
                    .put("/api/v1/namespaces/default/configmaps/m", json!({}));
            },
            // All is counted again.
            takes: Duration::from_secs(600),
            done: |cluster| {
                uses(cluster, "p", &json!({"pods": "1", "requests.cpu": "200m"}))
                    && uses(
                        cluster,
                        "q",
                        &json!({"configmaps": "1", "count/deployments.apps": "0"}),
                    )
            },
        },
        Step {
            what: "another limit is told at once",
            happens: |cluster| {
                super::change(
                    cluster,
                    &quota("p"),
                    &json!({"spec": {"hard": {"pods": "1"}}}),
                );
            },
            takes: AT_ONCE,
            done: |cluster| at(cluster, &quota("p"), "/status/hard/pods") == "1",
        },
    ],
};

fn job(name: &str) -> String {
    format!("/apis/batch/v1/namespaces/default/jobs/{name}")
}

/// Ended when the story begins.
fn put_job(cluster: &FakeCluster, name: &str, ttl_s: u64) {
    let ended = json!([{"type": "Complete", "status": "True",
        "lastTransitionTime": "2030-01-01T00:00:00Z"}]);
    let spec = json!({"ttlSecondsAfterFinished": ttl_s, "template": {}});
    cluster.api.put(
        &job(name),
        json!({"spec": spec, "status": {"conditions": ended}}),
    );
}

/// In the foreground, which somebody else ends.
fn goes(cluster: &FakeCluster, name: &str) -> bool {
    at(cluster, &job(name), "/metadata/finalizers") == json!(["foregroundDeletion"])
}

pub(super) static TTL: Story = Story {
    loops: &["ttl-after-finished"],
    config: Config::default,
    beat: None,
    writes_min: 3,
    names_vary: false,
    steps: &[
        Step {
            what: "those whose time is over go",
            happens: |cluster| {
                [("a", 0), ("b", 1), ("c", 600), ("d", 700)]
                    .iter()
                    .for_each(|(name, ttl_s)| put_job(cluster, name, *ttl_s));
            },
            takes: AT_ONCE,
            done: |cluster| {
                goes(cluster, "a")
                    && goes(cluster, "b")
                    && !goes(cluster, "c")
                    && !goes(cluster, "d")
            },
        },
        Step {
            what: "one of its name stays as long as it may",
            happens: |cluster| {
                cluster.api.delete(&job("a"));
                put_job(cluster, "a", 100_000);
                put_job(cluster, "d", 100_000);
            },
            takes: Duration::from_secs(600),
            done: |cluster| goes(cluster, "c") && !goes(cluster, "a") && !goes(cluster, "d"),
        },
    ],
};

fn put_pod_on(cluster: &FakeCluster, name: &str, node: Option<&str>) {
    let spec = json!({"containers": [], "nodeName": node});
    let pod = json!({"metadata": {}, "spec": spec, "status": {"phase": "Running"}});
    cluster.api.put(&format!("{DEFAULT_PODS}/{name}"), pod);
}

pub(super) static PODS: Story = Story {
    loops: &["pod-gc"],
    config: Config::default,
    beat: None,
    writes_min: 6,
    names_vary: false,
    steps: &[
        Step {
            what: "those of a node that is gone go after a while",
            happens: |cluster| {
                cluster.api.put("/api/v1/nodes/here", json!({}));
                put_pod_on(cluster, "stays", Some("here"));
                put_pod_on(cluster, "waits", None);
                ["one", "two"]
                    .iter()
                    .for_each(|name| put_pod_on(cluster, name, Some("gone")));
            },
            takes: Duration::from_secs(60),
            done: |cluster| cluster.api.objects("/api/v1/pods").len() == 2,
        },
        Step {
            what: "one that was deleted before it had a node goes",
            happens: |cluster| {
                let gone = json!({"deletionTimestamp": "2030-01-01T00:00:00Z"});
                super::change(
                    cluster,
                    &format!("{DEFAULT_PODS}/waits"),
                    &json!({"metadata": gone}),
                );
            },
            takes: AT_ONCE,
            done: |cluster| cluster.api.objects("/api/v1/pods").len() == 1,
        },
        Step {
            what: "a node that is back in time keeps its pods",
            happens: |cluster| {
                cluster.api.delete("/api/v1/nodes/here");
                put_pod_on(cluster, "one", Some("away"));
            },
            takes: Duration::from_secs(9),
            done: |_| true,
        },
        Step {
            what: "it is back, and the other is not",
            happens: |cluster| {
                cluster.api.put("/api/v1/nodes/here", json!({}));
            },
            takes: Duration::from_secs(60),
            done: |cluster| {
                there(cluster, &format!("{DEFAULT_PODS}/stays"))
                    && !there(cluster, &format!("{DEFAULT_PODS}/one"))
            },
        },
    ],
};
