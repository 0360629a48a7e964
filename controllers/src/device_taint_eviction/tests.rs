//! The whole loop against a server in memory.

use std::time::Duration;

use coracle_api::exposition::Text;
use serde_json::{Value, json};

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{FakeCluster, spawn};

const PODS: &str = "/api/v1/namespaces/default/pods";
const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
const SLICE: &str = "/apis/resource.k8s.io/v1/resourceslices/s";
/// When the clock of the loop begins.
const START: &str = "2030-01-01T00:00:00Z";

fn put_slice(cluster: &FakeCluster, taints: &Value) {
    let slice = json!({ "spec": {
        "driver": "d", "nodeName": "n",
        "pool": { "name": "p", "generation": 1, "resourceSliceCount": 1 },
        "devices": [{ "name": "a", "taints": taints }],
    } });
    cluster.api.put(SLICE, slice);
}

fn sick() -> Value {
    json!([{ "key": "sick", "effect": "NoExecute", "timeAdded": START }])
}

/// Runs on a node and uses the device by a claim of its own, which bears the taint for so long.
fn put_pod(cluster: &FakeCluster, name: &str, seconds: Option<u64>) {
    let claim = json!([{ "name": "gpu", "resourceClaimName": name }]);
    let pod = json!({
        "metadata": { "uid": name, "generation": 3 },
        "spec": { "nodeName": "n", "containers": [], "resourceClaims": claim },
        "status": { "phase": "Running" },
    });
    cluster.api.put(&format!("{PODS}/{name}"), pod);
    let tolerations = seconds.map(|seconds| {
        json!([{
            "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds,
        }])
    });
    let given = json!({
        "driver": "d", "pool": "p", "device": "a", "request": "one", "tolerations": tolerations,
    });
    let claim = json!({
        "spec": {},
        "status": {
            "allocation": { "devices": { "results": [given] } },
            "reservedFor": [{ "resource": "pods", "name": name, "uid": name }],
        },
    });
    cluster.api.put(&format!("{CLAIMS}/{name}"), claim);
}

fn is_there(cluster: &FakeCluster, name: &str) -> bool {
    cluster.api.get(&format!("{PODS}/{name}")).is_some()
}

fn events_of(cluster: &FakeCluster, name: &str) -> Vec<Value> {
    let events = cluster.api.objects("/api/v1/events");
    let own = events
        .into_iter()
        .filter(|event| event["involvedObject"]["name"] == name);
    own.collect()
}

/// Of this process, in which other tests count, too.
fn counted() -> u64 {
    let mut text = Text::default();
    evictions::metrics_text(&mut text);
    let text = text.into_string();
    let name = "device_taint_eviction_controller_pod_deletions_total ";
    let mut lines = text.lines();
    let count = lines.find_map(|line| line.strip_prefix(name));
    count.unwrap().parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_pod_goes_when_its_device_is_tainted_and_says_why() {
    let cluster = FakeCluster::new();
    put_slice(&cluster, &json!([]));
    put_pod(&cluster, "w", None);
    let before = counted();
    let _running = spawn(cluster.client(), Config::default(), run);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(is_there(&cluster, "w"));
    put_slice(&cluster, &sick());
    eventually("gone", || !is_there(&cluster, "w")).await;
    let pods = cluster.api.history().into_iter();
    let mut pods = pods.filter(|(collection, _, _)| collection == "/api/v1/pods");
    let (_, kind, last) = pods.next_back().unwrap();
    assert_eq!(kind, "DELETED");
    let condition = &last["status"]["conditions"][0];
    let expected = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByDeviceTaintManager",
        "message": "Device Taint manager: deleting due to NoExecute taint",
        "lastTransitionTime": "2030-01-01T00:00:05Z",
    });
    assert_eq!(*condition, expected);
    eventually("told", || !events_of(&cluster, "w").is_empty()).await;
    let event = &events_of(&cluster, "w")[0];
    assert_eq!(event["reason"], "DeviceTaintManagerEviction");
    assert_eq!(event["message"], "Marking for deletion");
    assert_eq!(event["type"], "Normal");
    assert_eq!(event["source"]["component"], NAME);
    assert!(counted() > before);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_bears_it_for_a_while_stays_when_the_taint_goes_in_time() {
    let cluster = FakeCluster::new();
    put_slice(&cluster, &sick());
    put_pod(&cluster, "short", Some(60));
    put_pod(&cluster, "long", Some(120));
    let _running = spawn(cluster.client(), Config::default(), run);
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert!(is_there(&cluster, "short") && is_there(&cluster, "long"));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!is_there(&cluster, "short") && is_there(&cluster, "long"));
    put_slice(&cluster, &json!([]));
    eventually("told", || !events_of(&cluster, "long").is_empty()).await;
    assert_eq!(
        events_of(&cluster, "long")[0]["message"],
        "Cancelling deletion"
    );
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(is_there(&cluster, "long"));
    assert_eq!(events_of(&cluster, "long").len(), 1);
    // The next one counts from its own time.
    put_slice(&cluster, &sick());
    eventually("gone", || !is_there(&cluster, "long")).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_goes_already_is_left_alone() {
    let cluster = FakeCluster::new();
    put_slice(&cluster, &sick());
    put_pod(&cluster, "w", None);
    let path = format!("{PODS}/w");
    let mut pod = cluster.api.get(&path).unwrap();
    pod["metadata"]["deletionTimestamp"] = START.into();
    cluster.api.put(&path, pod.clone());
    let _running = spawn(cluster.client(), Config::default(), run);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let now = cluster.api.get(&path).unwrap();
    assert_eq!(now["status"], pod["status"]);
    assert!(events_of(&cluster, "w").is_empty());
}
