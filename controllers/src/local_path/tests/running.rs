//! The loop against a server in memory.

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{FakeCluster, failure, spawn};
use http::Method;
use parking_lot::Mutex;

const CLAIM: &str = "/api/v1/namespaces/default/persistentvolumeclaims/data";
const VOLUME: &str = "/api/v1/persistentvolumes/pvc-u1";
const CLASS: &str = "/apis/storage.k8s.io/v1/storageclasses/local-path";
const NODE: &str = "/api/v1/nodes/a";
const REMOVAL: &str = "/api/v1/nodes/a/proxy/localvolumes/pvc-u1";

fn with_class() -> FakeCluster {
    let cluster = FakeCluster::new();
    cluster.api.put(CLASS, json!(plan::class(true)));
    cluster
}

/// Answers for the node; what it was asked.
fn node_that_answers(cluster: &FakeCluster, code: u16) -> Arc<Mutex<Vec<String>>> {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    cluster.on_request(move |method, path| {
        path.contains("/proxy/").then(|| {
            noted.lock().push(format!("{method} {path}"));
            match code {
                200 => (200, json!({})),
                code => (code, failure(code, "a disk that fails")),
            }
        })
    });
    asked
}

fn told(cluster: &FakeCluster) -> Vec<String> {
    let events = cluster.api.objects("/api/v1/events");
    let told = events
        .iter()
        .map(|event| format!("{}: {}", event["reason"], event["message"]));
    told.collect()
}

#[tokio::test(start_paused = true)]
async fn the_class_comes_with_the_first_node_that_has_a_place_and_only_once() {
    let cluster = FakeCluster::new();
    cluster.api.put("/api/v1/nodes/b", node("b", &[]));
    let _running = spawn(cluster.client(), Config::default(), run);
    cluster.api.put(NODE, node("a", &["directory=/srv"]));
    eventually("made", || cluster.api.get(CLASS).is_some()).await;
    let class = cluster.api.get(CLASS).unwrap();
    let mark = &class["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"];
    assert_eq!(*mark, "true");
    // Who deletes it does not want it.
    cluster.api.delete(CLASS);
    cluster.api.put(NODE, node("a", &["directory=/srv/other"]));
    cluster.api.put(CLAIM, claim(&["node=a"]));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(cluster.api.get(CLASS).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_default_class_that_is_there_stays_the_only_one() {
    let cluster = FakeCluster::new();
    let mut own = json!(plan::class(true));
    own["provisioner"] = json!("example.com/p");
    cluster.api.put(&CLASS.replace("local-path", "own"), own);
    cluster.api.put(NODE, node("a", &["directory=/srv"]));
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("made", || cluster.api.get(CLASS).is_some()).await;
    let class = cluster.api.get(CLASS).unwrap();
    assert!(class["metadata"]["annotations"].is_null());
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_made_for_a_claim_once_its_node_is_chosen() {
    let cluster = with_class();
    cluster.api.put(NODE, node("a", &["directory=/srv"]));
    cluster.api.put(CLAIM, claim(&[]));
    let _running = spawn(cluster.client(), Config::default(), run);
    cluster.api.put(CLAIM, claim(&["node=a"]));
    eventually("made", || cluster.api.get(VOLUME).is_some()).await;
    let spec = cluster.api.get(VOLUME).unwrap()["spec"].clone();
    assert_eq!(spec["local"]["path"], "/srv/pvc-u1");
    assert_eq!(spec["persistentVolumeReclaimPolicy"], "Delete");
    assert_eq!(spec["claimRef"]["uid"], "u1");
    eventually("told", || told(&cluster).len() == 1).await;
    assert!(told(&cluster)[0].contains("Successfully provisioned volume pvc-u1"));
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_seen_before_its_class_gets_its_volume_all_the_same() {
    let cluster = FakeCluster::new();
    cluster.api.put(CLAIM, claim(&["node=a"]));
    cluster.api.put(NODE, node("a", &[]));
    let _running = spawn(cluster.client(), Config::default(), run);
    cluster.api.put(NODE, node("a", &["directory=/srv"]));
    // The loop has looked at the claim by when it makes the class.
    eventually("the class", || cluster.api.get(CLASS).is_some()).await;
    eventually("the volume", || cluster.api.get(VOLUME).is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_for_a_node_without_a_place_goes_back_to_the_scheduler() {
    let cluster = with_class();
    cluster.api.put(NODE, node("a", &[]));
    cluster.api.put(CLAIM, claim(&["node=a"]));
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("given back", || {
        let claim = cluster.api.get(CLAIM).unwrap();
        claim["metadata"]["annotations"][SELECTED_NODE].is_null()
    })
    .await;
    assert!(cluster.api.get(VOLUME).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_is_released_is_deleted_and_its_node_asked() {
    let cluster = with_class();
    let asked = node_that_answers(&cluster, 200);
    cluster.api.put(NODE, node("a", &["directory=/srv"]));
    cluster.api.put(VOLUME, volume(&["phase=Bound"]));
    let _running = spawn(cluster.client(), Config::default(), run);
    cluster.api.put(VOLUME, volume(&["phase=Released"]));
    eventually("asked", || {
        *asked.lock() == [format!("{} {REMOVAL}", Method::DELETE)]
    })
    .await;
    eventually("let go", || {
        let volume = cluster.api.get(VOLUME).unwrap_or_default();
        volume["metadata"]["finalizers"]
            .as_array()
            .is_none_or(Vec::is_empty)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_is_asked_again_and_it_is_told() {
    let cluster = with_class();
    let asked = node_that_answers(&cluster, 500);
    cluster.api.put(NODE, node("a", &["directory=/srv"]));
    cluster.api.put(VOLUME, volume(&["going"]));
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("asked again", || asked.lock().len() > 3).await;
    eventually("told", || {
        told(&cluster)[0].contains("node a: a disk that fails")
    })
    .await;
    let finalizers = cluster.api.get(VOLUME).unwrap()["metadata"]["finalizers"].clone();
    assert_eq!(finalizers.as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_away_is_waited_for() {
    let cluster = with_class();
    let asked = node_that_answers(&cluster, 200);
    cluster
        .api
        .put(NODE, node("a", &["directory=/srv", "away"]));
    cluster.api.put(VOLUME, volume(&["going"]));
    let _running = spawn(cluster.client(), Config::default(), run);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(asked.lock().is_empty());
    cluster.api.put(NODE, node("a", &["directory=/srv"]));
    eventually("asked", || asked.lock().len() == 1).await;
}

/// It would look below its present directory, and find nothing to remove.
#[tokio::test(start_paused = true)]
async fn what_is_below_another_directory_than_the_nodes_is_told_to_be_left() {
    for now in ["directory=/mnt", "directory=/srv/pvc-u1", ""] {
        let cluster = with_class();
        let asked = node_that_answers(&cluster, 200);
        cluster.api.put(NODE, node("a", &[now]));
        cluster.api.put(VOLUME, volume(&["going"]));
        let _running = spawn(cluster.client(), Config::default(), run);
        let text = "node a has its volumes elsewhere now: what it has of the volume is left there";
        eventually("told", || {
            told(&cluster).iter().any(|told| told.contains(text))
        })
        .await;
        eventually("let go", || {
            let volume = cluster.api.get(VOLUME).unwrap_or_default();
            volume["metadata"]["finalizers"]
                .as_array()
                .is_none_or(Vec::is_empty)
        })
        .await;
        assert!(asked.lock().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_gone_keeps_what_it_has_after_a_while() {
    let cluster = with_class();
    cluster.api.put(VOLUME, volume(&["going"]));
    let _running = spawn(cluster.client(), Config::default(), run);
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert!(told(&cluster).is_empty());
    eventually("let go", || {
        let volume = cluster.api.get(VOLUME).unwrap_or_default();
        volume["metadata"]["finalizers"]
            .as_array()
            .is_none_or(Vec::is_empty)
    })
    .await;
    eventually("told", || {
        told(&cluster)
            .iter()
            .any(|one| one.contains("is left there"))
    })
    .await;
}

/// The copy says that it goes; the server that it is to be retained.
#[tokio::test(start_paused = true)]
async fn what_the_server_says_counts_and_not_the_copy() {
    let cluster = with_class();
    let asked = node_that_answers(&cluster, 200);
    cluster
        .api
        .put(NODE, node("a", &["directory=/srv", "away"]));
    cluster.api.put(VOLUME, volume(&["going"]));
    let _running = spawn(cluster.client(), Config::default(), run);
    tokio::time::sleep(Duration::from_secs(5)).await;
    cluster.api.break_watches();
    cluster.api.put(VOLUME, volume(&["going", "policy=Retain"]));
    cluster.api.put(NODE, node("a", &["directory=/srv"]));
    eventually("let go", || {
        let volume = cluster.api.get(VOLUME).unwrap_or_default();
        volume["metadata"]["finalizers"]
            .as_array()
            .is_none_or(Vec::is_empty)
    })
    .await;
    assert!(asked.lock().is_empty());
}
