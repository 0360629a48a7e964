//! The whole loop against a server in memory.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{Calls, Death, FakeCluster, spawn, spawn_mortal};

const PODS: &str = "/api/v1/namespaces/default/pods";
const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
const ALL_CLAIMS: &str = "/apis/resource.k8s.io/v1/resourceclaims";
const TEMPLATE: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates/gpu";

fn put_template(cluster: &FakeCluster) {
    let template = json!({"spec": {
        "metadata": {"labels": {"kind": "gpu"}, "annotations": {"note": "a"}},
        "spec": {"devices": {"requests": [{"name": "one",
            "exactly": {"deviceClassName": "gpu.example.org"}}]}},
    }});
    cluster.api.put(TEMPLATE, template);
}

/// Wants a claim `gpu` made for it.
fn put_pod(cluster: &FakeCluster, name: &str, change: Value) {
    let mut pod = json!({
        "spec": {"containers": [], "resourceClaims": [
            {"name": "gpu", "resourceClaimTemplateName": "gpu"},
        ]},
        "status": {"phase": "Pending"},
    });
    crate::fake_api::merge(&mut pod, &change);
    cluster.api.put(&format!("{PODS}/{name}"), pod);
}

fn pod(cluster: &FakeCluster, name: &str) -> Value {
    cluster.api.get(&format!("{PODS}/{name}")).unwrap()
}

fn claims(cluster: &FakeCluster) -> Vec<Value> {
    cluster.api.objects(ALL_CLAIMS)
}

/// What the pod is told of its claim.
fn told_of(cluster: &FakeCluster, name: &str) -> Value {
    pod(cluster, name)["status"]["resourceClaimStatuses"].clone()
}

/// As the scheduler leaves it.
fn allocate(cluster: &FakeCluster, claim: &str, pods: &[(&str, &str)]) {
    let path = format!("{CLAIMS}/{claim}");
    let mut object = cluster.api.get(&path).unwrap();
    object["metadata"]["finalizers"] = json!([plan::FINALIZER]);
    let reserved: Vec<Value> = pods
        .iter()
        .map(|(name, uid)| json!({"resource": "pods", "name": name, "uid": uid}))
        .collect();
    object["status"] = json!({"allocation": {"devices": {}}, "reservedFor": reserved});
    cluster.api.put(&path, object);
}

fn uid(cluster: &FakeCluster, name: &str) -> String {
    pod(cluster, name)["metadata"]["uid"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_pod_gets_the_claim_that_it_wants_made() {
    let cluster = FakeCluster::new();
    put_template(&cluster);
    put_pod(&cluster, "a", json!({}));
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("told", || told_of(&cluster, "a")[0]["name"] == "gpu").await;
    let all = claims(&cluster);
    assert_eq!(all.len(), 1, "{all:?}");
    let meta = &all[0]["metadata"];
    assert_eq!(
        told_of(&cluster, "a"),
        json!([{"name": "gpu", "resourceClaimName": meta["name"]}])
    );
    assert!(
        meta["name"].as_str().unwrap().starts_with("a-gpu-"),
        "{meta}"
    );
    assert_eq!(meta["labels"], json!({"kind": "gpu"}));
    assert_eq!(
        meta["annotations"],
        json!({"note": "a", "resource.kubernetes.io/pod-claim-name": "gpu"})
    );
    assert_eq!(
        meta["ownerReferences"],
        json!([{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": uid(&cluster, "a"),
                "controller": true}])
    );
    let request = &all[0]["spec"]["devices"]["requests"][0];
    assert_eq!(request["exactly"]["deviceClassName"], "gpu.example.org");
    // One that is lost is made again.
    cluster
        .api
        .delete(&format!("{CLAIMS}/{}", meta["name"].as_str().unwrap()));
    put_pod(&cluster, "b", json!({}));
    eventually("both", || {
        let all = claims(&cluster);
        let name = |pod: &str| told_of(&cluster, pod)[0]["resourceClaimName"].clone();
        all.len() == 2
            && all.iter().all(|one| {
                let own = &one["metadata"]["name"];
                *own == name("a") || *own == name("b")
            })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_template_that_is_not_there_is_told_of_and_waited_for() {
    let cluster = FakeCluster::new();
    put_pod(&cluster, "a", json!({}));
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("told", || {
        let events = cluster.api.objects("/api/v1/events");
        events.iter().any(|event| {
            event["reason"] == "FailedResourceClaimCreation"
                && event["type"] == "Warning"
                && event["message"]
                    == "PodResourceClaim gpu: resource claim template \"gpu\": \
                        resourceclaimtemplate.resource.k8s.io \"gpu\" not found"
        })
    })
    .await;
    put_template(&cluster);
    eventually("made", || told_of(&cluster, "a")[0]["name"] == "gpu").await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_has_a_node_already_gets_its_claims_reserved() {
    let cluster = FakeCluster::new();
    let path = format!("{CLAIMS}/shared");
    cluster.api.put(&path, json!({"spec": {"devices": {}}}));
    let own = json!([{"name": "gpu", "resourceClaimName": "shared"}]);
    let change = json!({"spec": {"nodeName": "n1", "resourceClaims": own}});
    put_pod(&cluster, "a", change);
    let _running = spawn(cluster.client(), Config::default(), run);
    // Not before it is allocated.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(cluster.api.get(&path).unwrap()["status"].is_null());
    allocate(&cluster, "shared", &[]);
    eventually("reserved", || {
        let claim = cluster.api.get(&path).unwrap();
        claim["status"]["reservedFor"]
            == json!([{"resource": "pods", "name": "a", "uid": uid(&cluster, "a")}])
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_was_made_for_a_pod_goes_when_it_has_ended() {
    let cluster = FakeCluster::new();
    put_template(&cluster);
    put_pod(&cluster, "a", json!({}));
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("made", || told_of(&cluster, "a")[0]["name"] == "gpu").await;
    let name = told_of(&cluster, "a")[0]["resourceClaimName"].clone();
    let name = name.as_str().unwrap();
    allocate(&cluster, name, &[("a", &uid(&cluster, "a"))]);
    let mut ended = pod(&cluster, "a");
    ended["spec"]["nodeName"] = json!("n1");
    ended["status"]["phase"] = json!("Succeeded");
    cluster.api.put(&format!("{PODS}/a"), ended);
    eventually("gone", || claims(&cluster).is_empty()).await;
    // And none is made for it again.
    tokio::time::sleep(Duration::from_secs(1200)).await;
    assert_eq!(claims(&cluster), Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_the_users_is_taken_back_from_pods_that_are_gone_and_stays() {
    let cluster = FakeCluster::new();
    let path = format!("{CLAIMS}/shared");
    cluster.api.put(&path, json!({"spec": {"devices": {}}}));
    let own = json!([{"name": "gpu", "resourceClaimName": "shared"}]);
    for name in ["a", "b"] {
        let change = json!({"spec": {"nodeName": "n1", "resourceClaims": own},
                            "status": {"phase": "Running"}});
        put_pod(&cluster, name, change);
    }
    let (a, b) = (uid(&cluster, "a"), uid(&cluster, "b"));
    // One is of a pod whose name another has now.
    allocate(
        &cluster,
        "shared",
        &[("a", &a), ("b", &b), ("b", "another")],
    );
    let _running = spawn(cluster.client(), Config::default(), run);
    let reserved = || cluster.api.get(&path).unwrap()["status"]["reservedFor"].clone();
    let of = |name: &str, uid: &str| json!({"resource": "pods", "name": name, "uid": uid});
    eventually("two", || reserved() == json!([of("a", &a), of("b", &b)])).await;
    cluster.api.delete(&format!("{PODS}/a"));
    eventually("one", || reserved() == json!([of("b", &b)])).await;
    let status = &cluster.api.get(&path).unwrap()["status"];
    assert!(status["allocation"].is_object(), "{status}");
    cluster.api.delete(&format!("{PODS}/b"));
    eventually("free", || {
        let claim = cluster.api.get(&path).unwrap();
        claim["status"]["allocation"].is_null()
            && claim["status"]["reservedFor"].is_null()
            && claim["metadata"]["finalizers"] == json!([])
    })
    .await;
}

/// The cache still has the one of before it.
#[tokio::test(start_paused = true)]
async fn a_pod_that_is_there_again_keeps_what_it_got_before_the_cache_shows_it() {
    let cluster = FakeCluster::new();
    let path = format!("{CLAIMS}/shared");
    cluster.api.put(&path, json!({"spec": {"devices": {}}}));
    let own = json!([{"name": "gpu", "resourceClaimName": "shared"}]);
    let change = json!({"spec": {"nodeName": "n1", "resourceClaims": own},
                        "status": {"phase": "Running"}});
    put_pod(&cluster, "a", change);
    let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    cluster.on_request(move |method, path| {
        let is_it = *method == http::Method::GET && path.ends_with("/pods/a");
        is_it.then(|| {
            counted.fetch_add(1, Ordering::Relaxed);
            (200, json!({"metadata": {"name": "a", "uid": "new"}}))
        })
    });
    allocate(&cluster, "shared", &[("a", "new")]);
    let _running = spawn(cluster.client(), Config::default(), run);
    eventually("asked", || asked.load(Ordering::Relaxed) > 0).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let claim = cluster.api.get(&path).unwrap();
    assert_eq!(claim["status"]["reservedFor"][0]["uid"], "new", "{claim}");
}

#[tokio::test(start_paused = true)]
async fn one_that_is_deleted_goes_when_nobody_has_it_any_more() {
    let cluster = FakeCluster::new();
    let path = format!("{CLAIMS}/shared");
    cluster.api.put(&path, json!({"spec": {"devices": {}}}));
    allocate(&cluster, "shared", &[]);
    let _running = spawn(cluster.client(), Config::default(), run);
    // Whoever comes next may have it as it is.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let claim = cluster.api.get(&path).unwrap();
    assert!(claim["status"]["allocation"].is_object(), "{claim}");
    cluster.delete_as(&path, "Background");
    eventually("gone", || cluster.api.get(&path).is_none()).await;
}

#[test]
fn names_that_are_too_long_are_shortened_together() {
    let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "p".repeat(60)}})).unwrap();
    let template = json!({"metadata": {}, "spec": {"spec": {"devices": {}}}});
    let template = serde_json::from_value(template).unwrap();
    let made = plan::from_template(&pod, &"c".repeat(20), &template);
    let expected = format!("{}-{}", "p".repeat(41), "c".repeat(13));
    assert_eq!(made.metadata.generate_name, Some(expected));
}

/// Two pods come, and one ends.
async fn live(death: Option<Death>) -> Calls {
    let cluster = FakeCluster::new();
    put_template(&cluster);
    put_pod(&cluster, "a", json!({}));
    put_pod(&cluster, "b", json!({}));
    let living = spawn_mortal(&cluster, run, death);
    let is_told = |name: &str| told_of(&cluster, name)[0]["resourceClaimName"].is_string();
    eventually(&format!("both, {death:?}"), || is_told("a") && is_told("b")).await;
    assert_eq!(claims(&cluster).len(), 2, "{death:?}");
    let name = told_of(&cluster, "a")[0]["resourceClaimName"].clone();
    allocate(
        &cluster,
        name.as_str().unwrap(),
        &[("a", &uid(&cluster, "a"))],
    );
    let mut ended = pod(&cluster, "a");
    ended["spec"]["nodeName"] = json!("n1");
    ended["status"]["phase"] = json!("Failed");
    cluster.api.put(&format!("{PODS}/a"), ended);
    eventually(&format!("one, {death:?}"), || {
        let all = claims(&cluster);
        let left = told_of(&cluster, "b")[0]["resourceClaimName"].clone();
        all.len() == 1 && all[0]["metadata"]["name"] == left
    })
    .await;
    living.calls.clone()
}

#[tokio::test(start_paused = true)]
async fn wherever_it_dies_each_pod_has_one_claim() {
    let calls = live(None).await;
    let writes = calls.writes();
    assert!(writes >= 7, "{writes}");
    for death in calls.deaths(1) {
        live(Some(death)).await;
    }
}
