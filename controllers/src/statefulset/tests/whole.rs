//! The loop against a server in memory: what it writes, in which order, and what it says.

use parking_lot::Mutex;

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{FakeCluster, spawn};

pub(super) const SET: &str = "/apis/apps/v1/namespaces/default/statefulsets/web";
const PODS: &str = "/api/v1/namespaces/default/pods";

pub(super) fn put_set(cluster: &FakeCluster, change: impl Fn(&mut Value)) {
    let stored = cluster.api.get(SET);
    let mut value = stored.unwrap_or_else(|| json!(super::set(&["replicas=2", "claims=data"])));
    value["spec"]["revisionHistoryLimit"] = json!(1);
    change(&mut value);
    cluster.api.put(SET, value);
}

/// Every pod comes up at once.
pub(super) fn run_pods(cluster: &FakeCluster) {
    for mut pod in cluster.api.objects("/api/v1/pods") {
        if pod["status"]["phase"] != "Running" {
            pod["status"] = json!({"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2029-12-31T00:00:00Z"},
            ]});
            let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
            cluster.api.put(&format!("{PODS}/{name}"), pod);
        }
    }
}

pub(super) fn images(cluster: &FakeCluster) -> Vec<Value> {
    let pods = cluster.api.objects("/api/v1/pods");
    let image = |pod: &Value| pod["spec"]["containers"][0]["image"].clone();
    pods.iter().map(image).collect()
}

fn revisions(cluster: &FakeCluster) -> Vec<Value> {
    cluster.api.objects("/apis/apps/v1/controllerrevisions")
}

async fn until(cluster: &FakeCluster, what: &str, check: impl Fn(&Value) -> bool) {
    eventually(what, || {
        run_pods(cluster);
        check(&cluster.api.get(SET).unwrap())
    })
    .await;
}

/// What the events say.
fn events(cluster: &FakeCluster) -> Vec<String> {
    let text = |event: &Value| {
        let field = |name: &str| event[name].as_str().unwrap().to_owned();
        format!(
            "{} {}: {}",
            field("type"),
            field("reason"),
            field("message")
        )
    };
    let events = cluster.api.objects("/api/v1/events");
    events.iter().map(text).collect()
}

pub(super) fn is_complete(set: &Value, replicas: i64) -> bool {
    let status = &set["status"];
    status["readyReplicas"] == replicas
        && status["updatedReplicas"] == replicas
        && status["replicas"] == replicas
        && status["currentRevision"] == status["updateRevision"]
}

#[tokio::test(start_paused = true)]
async fn comes_up_with_its_claims_and_one_revision() {
    let cluster = FakeCluster::new();
    put_set(&cluster, |_| {});
    let _running = spawn(cluster.client(), Config::default(), run);
    until(&cluster, "two pods run", |set| is_complete(set, 2)).await;
    let names = |collection: &str| -> Vec<String> {
        let objects = cluster.api.objects(collection);
        let name = |one: &Value| one["metadata"]["name"].as_str().unwrap().to_owned();
        objects.iter().map(name).collect()
    };
    assert_eq!(names("/api/v1/pods"), ["web-0", "web-1"]);
    let claims = "/api/v1/persistentvolumeclaims";
    assert_eq!(names(claims), ["data-web-0", "data-web-1"]);
    let revisions = revisions(&cluster);
    assert_eq!(revisions.len(), 1);
    assert_eq!(revisions[0]["revision"], 1);
    let set = cluster.api.get(SET).unwrap();
    assert_eq!(
        set["status"]["currentRevision"],
        revisions[0]["metadata"]["name"]
    );
    assert_eq!(set["status"]["collisionCount"], 0);
}

/// The clock stands still within a pass, and here an instant has one event of an object: that of
/// the first pod's success is not looked for.
#[tokio::test(start_paused = true)]
async fn a_refused_pod_is_told_and_tried_again() {
    let cluster = FakeCluster::new();
    let refusals = Arc::new(Mutex::new(1));
    let left = refusals.clone();
    cluster.on_request(move |method, path| {
        let mut left = left.lock();
        if *method != http::Method::POST || path != PODS || *left == 0 {
            return None;
        }
        *left -= 1;
        Some((403, crate::fake_cluster::failure(403, "exceeded quota")))
    });
    put_set(&cluster, |set| {
        set["spec"]["volumeClaimTemplates"] = json!([])
    });
    let _running = spawn(cluster.client(), Config::default(), run);
    until(&cluster, "the pods run", |set| is_complete(set, 2)).await;
    for told in [
        "Warning FailedCreate: Create Pod web-0 in StatefulSet web failed error: exceeded quota",
        "Normal SuccessfulCreate: Create Pod web-1 in StatefulSet web successful",
    ] {
        let is_told = || events(&cluster).iter().any(|event| event == told);
        eventually(told, is_told).await;
    }
}

#[tokio::test(start_paused = true)]
async fn rolls_out_and_back_over_the_same_revision_and_keeps_few() {
    let cluster = FakeCluster::new();
    put_set(&cluster, |_| {});
    let _running = spawn(cluster.client(), Config::default(), run);
    until(&cluster, "two pods run", |set| is_complete(set, 2)).await;
    let first = cluster.api.get(SET).unwrap()["status"]["updateRevision"].clone();
    for image in ["second", "third"] {
        put_set(&cluster, |set| {
            set["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        });
        eventually("it is rolled out", || {
            run_pods(&cluster);
            let all = images(&cluster) == [image, image];
            all && is_complete(&cluster.api.get(SET).unwrap(), 2)
        })
        .await;
    }
    eventually("the oldest revision goes", || {
        revisions(&cluster).len() == 2
    })
    .await;
    put_set(&cluster, |set| {
        set["spec"]["template"]["spec"]["containers"][0]["image"] = json!("second");
    });
    eventually("it is rolled back", || {
        run_pods(&cluster);
        images(&cluster) == ["second", "second"] && is_complete(&cluster.api.get(SET).unwrap(), 2)
    })
    .await;
    let mut numbers: Vec<i64> = revisions(&cluster)
        .iter()
        .map(|one| one["revision"].as_i64().unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [3, 4], "the second became the newest again");
    assert!(
        revisions(&cluster)
            .iter()
            .all(|one| one["metadata"]["name"] != first)
    );
}

#[tokio::test(start_paused = true)]
async fn scales_down_from_the_top_and_keeps_the_claims() {
    let cluster = FakeCluster::new();
    let deleted = Arc::new(Mutex::new(Vec::new()));
    let seen = deleted.clone();
    cluster.on_request(move |method, path| {
        if *method == http::Method::DELETE {
            seen.lock().push(path.to_owned());
        }
        None
    });
    put_set(&cluster, |set| set["spec"]["replicas"] = json!(3));
    let _running = spawn(cluster.client(), Config::default(), run);
    until(&cluster, "three pods run", |set| is_complete(set, 3)).await;
    put_set(&cluster, |set| set["spec"]["replicas"] = json!(0));
    until(&cluster, "all are gone", |set| {
        set["status"]["replicas"] == 0 && cluster.api.objects("/api/v1/pods").is_empty()
    })
    .await;
    let pods = ["web-2", "web-1", "web-0"].map(|name| format!("{PODS}/{name}"));
    assert_eq!(*deleted.lock(), pods, "each once");
    assert_eq!(
        cluster.api.objects("/api/v1/persistentvolumeclaims").len(),
        3
    );
}
