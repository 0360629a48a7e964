//! The whole loop against a server in memory: its writes, and that it ends where it should.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use http::Method;
use serde_json::{Value, json};

use crate::fake_api::{FakeApi, eventually};
use crate::fake_cluster::{self, FakeCluster, failure};
use crate::{Config, Context};

const SET: &str = "/apis/apps/v1/namespaces/default/daemonsets/ds";
const PODS: &str = "/api/v1/pods";
const REVISIONS: &str = "/apis/apps/v1/controllerrevisions";

fn put_set(cluster: &FakeCluster, image: &str, generation: i64) {
    let mut set = cluster.api.get(SET).unwrap_or_else(|| json!({}));
    set["metadata"]["generation"] = json!(generation);
    set["spec"] = json!({
        "selector": {"matchLabels": {"app": "ds"}},
        "revisionHistoryLimit": 1,
        "template": {
            "metadata": {"labels": {"app": "ds"}},
            "spec": {"containers": [{"name": "c", "image": image}]},
        },
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
    });
    cluster.api.put(SET, set);
}

fn put_node(cluster: &FakeCluster, name: &str) {
    let path = format!("/api/v1/nodes/{name}");
    cluster.api.put(&path, json!({"metadata": {"labels": {}}}));
}

/// Does what scheduler and agent would for every pod that has no node yet.
fn run_pods(cluster: &FakeCluster) {
    for mut pod in cluster.api.objects(PODS) {
        if pod["spec"]["nodeName"].is_string() {
            continue;
        }
        let affinity = &pod["spec"]["affinity"]["nodeAffinity"];
        let terms =
            &affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
        let node = terms[0]["matchFields"][0]["values"][0].clone();
        pod["spec"]["nodeName"] = node;
        pod["status"] = json!({"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T00:00:00Z"},
        ]});
        let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
        let path = format!("/api/v1/namespaces/default/pods/{name}");
        cluster.api.put(&path, pod);
    }
}

fn images(cluster: &FakeCluster) -> Vec<String> {
    let pods = cluster.api.objects(PODS);
    let image = |pod: &Value| {
        pod["spec"]["containers"][0]["image"]
            .as_str()
            .map(str::to_owned)
    };
    pods.iter().filter_map(image).collect()
}

fn revisions(cluster: &FakeCluster) -> Vec<(i64, String)> {
    let all = cluster.api.objects(REVISIONS);
    let mut numbers: Vec<_> = all
        .iter()
        .map(|one| {
            let template = &one["data"]["spec"]["template"];
            let image = template["spec"]["containers"][0]["image"].as_str();
            (one["revision"].as_i64().unwrap(), image.unwrap().to_owned())
        })
        .collect();
    numbers.sort();
    numbers
}

fn pod_path(name: &str) -> String {
    format!("/api/v1/namespaces/default/pods/{name}")
}

fn owner(api: &FakeApi) -> Value {
    let uid = api.get(SET).unwrap()["metadata"]["uid"].clone();
    json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "ds", "uid": uid,
        "controller": true}])
}

/// A pod of the set that is ready on its node.
fn owned_pod(api: &FakeApi, node: &str, hash: &str, image: &str) -> Value {
    json!({
        "metadata": {"ownerReferences": owner(api),
                     "labels": {"app": "ds", "controller-revision-hash": hash}},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": image}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn status(cluster: &FakeCluster, field: &str) -> Value {
    cluster.api.get(SET).unwrap()["status"][field].clone()
}

fn run(context: Context) -> BoxFuture<'static, ()> {
    super::super::run(context)
}

fn start(cluster: &FakeCluster) -> tokio_util::sync::DropGuard {
    fake_cluster::spawn(cluster.client(), Config::default(), run)
}

#[tokio::test(start_paused = true)]
async fn a_rollout_ends_with_new_pods_and_a_history() {
    let cluster = FakeCluster::new();
    put_node(&cluster, "a");
    put_node(&cluster, "b");
    put_set(&cluster, "v1", 1);
    let _running = start(&cluster);
    for (generation, image) in [(1, "v1"), (2, "v2"), (3, "v3")] {
        put_set(&cluster, image, generation);
        eventually(image, || {
            run_pods(&cluster);
            images(&cluster) == [image, image]
                && status(&cluster, "numberAvailable") == 2
                && status(&cluster, "updatedNumberScheduled") == 2
                && status(&cluster, "observedGeneration") == generation
        })
        .await;
    }
    // One old revision is kept, and going back to it makes it the newest.
    eventually("v1 forgotten", || {
        revisions(&cluster) == [(2, "v2".to_owned()), (3, "v3".to_owned())]
    })
    .await;
    put_set(&cluster, "v2", 4);
    eventually("back", || {
        run_pods(&cluster);
        images(&cluster) == ["v2", "v2"]
            && revisions(&cluster) == [(3, "v3".to_owned()), (4, "v2".to_owned())]
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn nodes_come_and_go() {
    let cluster = FakeCluster::new();
    put_set(&cluster, "v1", 1);
    let _running = start(&cluster);
    eventually("nothing to do", || {
        status(&cluster, "observedGeneration") == 1
    })
    .await;
    put_node(&cluster, "a");
    eventually("one pod", || {
        status(&cluster, "currentNumberScheduled") == 1
    })
    .await;
    // Its pod waits for a node that is not there any more.
    cluster.api.delete("/api/v1/nodes/a");
    eventually("no pod", || {
        images(&cluster).is_empty() && status(&cluster, "desiredNumberScheduled") == 0
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn another_controllers_history_is_taken_over() {
    let cluster = FakeCluster::new();
    put_node(&cluster, "a");
    put_set(&cluster, "v1", 1);
    let owner = owner(&cluster.api);
    let data = json!({"spec": {"template": {"$patch": "replace",
        "metadata": {"creationTimestamp": null, "labels": {"app": "ds"}},
        "spec": {"containers": [{"name": "c", "image": "v1"}]}}}});
    cluster.api.put(
        "/apis/apps/v1/namespaces/default/controllerrevisions/ds-theirs",
        json!({"metadata": {"ownerReferences": owner,
                            "labels": {"app": "ds", "controller-revision-hash": "theirs"}},
               "data": data, "revision": 4}),
    );
    cluster.api.put(
        &pod_path("ds-x"),
        owned_pod(&cluster.api, "a", "theirs", "v1"),
    );
    let _running = start(&cluster);
    eventually("counted", || {
        status(&cluster, "updatedNumberScheduled") == 1
    })
    .await;
    assert_eq!(cluster.api.objects(PODS).len(), 1);
    assert!(cluster.api.get(&pod_path("ds-x")).is_some());
    assert_eq!(revisions(&cluster), [(4, "v1".to_owned())]);
}

/// As two servers leave it that made the same history at the same time.
#[tokio::test(start_paused = true)]
async fn two_revisions_of_one_template_become_one_and_take_no_others_pods() {
    let cluster = FakeCluster::new();
    put_set(&cluster, "v2", 2);
    let owner = owner(&cluster.api);
    for (node, number, image) in [("a", 1, "v1"), ("b", 2, "v2"), ("c", 3, "v2")] {
        put_node(&cluster, node);
        let hash = format!("h{number}");
        let data = json!({"spec": {"template": {"$patch": "replace",
            "metadata": {"labels": {"app": "ds"}},
            "spec": {"containers": [{"name": "c", "image": image}]}}}});
        cluster.api.put(
            &format!("/apis/apps/v1/namespaces/default/controllerrevisions/ds-{hash}"),
            json!({"metadata": {"ownerReferences": owner,
                                "labels": {"app": "ds", "controller-revision-hash": hash}},
                   "data": data, "revision": number}),
        );
        let pod = owned_pod(&cluster.api, node, &hash, image);
        cluster.api.put(&pod_path(&format!("ds-{hash}")), pod);
    }
    let _running = start(&cluster);
    eventually("updated", || {
        run_pods(&cluster);
        images(&cluster) == ["v2", "v2", "v2"] && status(&cluster, "updatedNumberScheduled") == 3
    })
    .await;
    let hash = |name: &str| {
        let pod = cluster.api.get(&pod_path(name));
        pod.map(|pod| pod["metadata"]["labels"]["controller-revision-hash"].clone())
    };
    assert_eq!(hash("ds-h1"), None, "it was of another template");
    let newest = Some(json!("h3"));
    assert_eq!((hash("ds-h2"), hash("ds-h3")), (newest.clone(), newest));
    assert_eq!(
        revisions(&cluster),
        [(1, "v1".to_owned()), (3, "v2".to_owned())]
    );
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_counts_a_collision() {
    let cluster = FakeCluster::new();
    put_node(&cluster, "a");
    put_set(&cluster, "v1", 1);
    // The first creation meets another's revision of that name.
    let (taken, mut first) = (cluster.api.clone(), true);
    cluster.on_request(move |method, path| {
        let creates = *method == Method::POST && path.ends_with("/controllerrevisions");
        if !(creates && std::mem::take(&mut first)) {
            return None;
        }
        let stored = taken.get(SET).unwrap();
        let set = serde_json::from_value(stored).unwrap();
        let data = crate::history::data_of(super::Spec::of(&set).unwrap().template);
        let name = format!("ds-{}", crate::history::hash(&data, None));
        let path = format!("/apis/apps/v1/namespaces/default/controllerrevisions/{name}");
        taken.put(
            &path,
            json!({"metadata": {}, "data": {"other": 1}, "revision": 1}),
        );
        Some((409, failure(409, "AlreadyExists")))
    });
    let _running = start(&cluster);
    eventually("one pod", || images(&cluster) == ["v1"]).await;
    assert_eq!(status(&cluster, "collisionCount"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refused_pod_is_tried_again_and_not_in_numbers() {
    let cluster = FakeCluster::new();
    for node in ["a", "b", "c", "d"] {
        put_node(&cluster, node);
    }
    put_set(&cluster, "v1", 1);
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    cluster.on_request(move |method, path| {
        if *method != Method::POST || !path.ends_with("/pods") {
            return None;
        }
        let before = counted.fetch_add(1, Ordering::Relaxed);
        (before < 3).then(|| (403, failure(403, "Forbidden")))
    });
    let _running = start(&cluster);
    eventually("four pods", || images(&cluster).len() == 4).await;
    // Each pass that was refused had asked for one alone.
    assert_eq!(asked.load(Ordering::Relaxed), 3 + 4);
    eventually("told", || {
        let events = cluster.api.objects("/api/v1/events");
        events.iter().any(|event| event["reason"] == "FailedCreate")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_seen_while_a_pass_runs_is_not_made_twice() {
    let cluster = FakeCluster::new();
    put_node(&cluster, "a");
    put_set(&cluster, "v1", 1);
    // Neither pod is of its revision, and both stay.
    let mut set = cluster.api.get(SET).unwrap();
    set["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    cluster.api.put(SET, set);
    // The first pod is made, and nobody sees it until the next pass is about to adopt another.
    let (api, made) = (cluster.api.clone(), Arc::new(AtomicUsize::new(0)));
    let counted = made.clone();
    cluster.on_request(move |method, path| {
        if *method == Method::POST && path.ends_with("/pods") {
            counted.fetch_add(1, Ordering::Relaxed);
            return Some((201, json!({"metadata": {"name": "ds-late"}})));
        }
        let is_due = counted.load(Ordering::Relaxed) > 0 && api.get(&pod_path("ds-late")).is_none();
        if *method == Method::GET && path == SET && is_due {
            api.put(&pod_path("ds-late"), owned_pod(&api, "a", "late", "v1"));
        }
        None
    });
    let _running = start(&cluster);
    eventually("made", || made.load(Ordering::Relaxed) == 1).await;
    let mut orphan = owned_pod(&cluster.api, "b", "other", "v1");
    orphan["metadata"]["ownerReferences"] = json!([]);
    put_node(&cluster, "b");
    cluster.api.put(&pod_path("orphan"), orphan);
    eventually("both counted", || {
        status(&cluster, "currentNumberScheduled") == 2
    })
    .await;
    assert_eq!(made.load(Ordering::Relaxed), 1);
}
