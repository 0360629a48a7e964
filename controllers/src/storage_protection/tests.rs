//! What is in use stays, and what is not goes; against a server in memory.

use super::*;
use crate::Config;
use crate::fake_api::{FakeApi, eventually};
use crate::fake_cluster::spawn;
use coracle_client::informer::Informers;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::sync::DropGuard;

const CLAIM: &str = "/api/v1/namespaces/default/persistentvolumeclaims/data";
const VOLUME: &str = "/api/v1/persistentvolumes/disk";
const CLASS: &str = "/apis/storage.k8s.io/v1/volumeattributesclasses/fast";
const POD: &str = "/api/v1/namespaces/default/pods/web";

struct Site {
    api: FakeApi,
    _running: DropGuard,
}

fn start(api: FakeApi, run: fn(Context) -> BoxFuture<'static, ()>) -> Site {
    let _running = spawn(api.client(), Config::default(), run);
    Site { api, _running }
}

fn object(finalizer: &str, is_deleting: bool, rest: Value) -> Value {
    let mut object = rest;
    object["metadata"] = json!({ "finalizers": [finalizer] });
    if is_deleting {
        object["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z".into();
    }
    object
}

fn claim(is_deleting: bool) -> Value {
    object(
        "kubernetes.io/pvc-protection",
        is_deleting,
        json!({ "spec": {} }),
    )
}

fn pod(node: &str) -> Value {
    json!({
        "metadata": { "uid": "pod-uid" },
        "spec": {
            "containers": [],
            "nodeName": node,
            "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "data" } }],
        },
    })
}

impl Site {
    fn finalizers(&self, path: &str) -> Vec<String> {
        let object = self.api.get(path).unwrap();
        let list = object["metadata"]["finalizers"].as_array().cloned();
        let list = list.unwrap_or_default();
        list.iter()
            .map(|one| one.as_str().unwrap().to_owned())
            .collect()
    }

    async fn goes(&self, path: &str) {
        eventually("the finalizer goes", || self.finalizers(path).is_empty()).await;
    }

    /// Waits until the loop has surely looked: it has done something to another object.
    async fn has_looked(&self, other: &str, rest: Value) {
        let mut bare = rest;
        bare["metadata"] = json!({});
        self.api.put(other, bare);
        eventually("a finalizer is given", || {
            !self.finalizers(other).is_empty()
        })
        .await;
    }
}

#[tokio::test]
async fn a_claim_stays_while_a_pod_on_a_node_mounts_it() {
    let api = FakeApi::new();
    api.put(CLAIM, claim(true));
    api.put(POD, pod("n1"));
    let site = start(api, run_claims);
    let other = CLAIM.replace("data", "other");
    site.has_looked(&other, json!({ "spec": {} })).await;
    assert_eq!(site.finalizers(CLAIM), ["kubernetes.io/pvc-protection"]);
    site.api.delete(POD);
    site.goes(CLAIM).await;
}

#[tokio::test]
async fn a_claim_of_a_pod_that_only_waits_for_it_goes() {
    let (claim, web) = ephemeral();
    let api = FakeApi::new();
    let path = CLAIM.replace("data", "web-v");
    api.put(&path, claim);
    api.put(POD, web.clone());
    let site = start(api, run_claims);
    let other = CLAIM.replace("data", "other");
    site.has_looked(&other, json!({ "spec": {} })).await;
    assert_eq!(site.finalizers(&path), ["kubernetes.io/pvc-protection"]);
    let mut shut = web;
    shut["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    shut["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z".into();
    shut["metadata"]["deletionGracePeriodSeconds"] = 0.into();
    site.api.put(POD, shut);
    site.goes(&path).await;
}

/// A claim that is being deleted and the pod that it was made for, on a node.
fn ephemeral() -> (Value, Value) {
    let mut claim = claim(true);
    claim["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "pod-uid", "controller": true,
    }]);
    let mut pod = pod("n1");
    pod["spec"]["volumes"] = json!([{ "name": "v", "ephemeral": {} }]);
    pod["status"] = json!({ "phase": "Running" });
    (claim, pod)
}

/// The copy does not know of it yet.
#[tokio::test]
async fn a_pod_on_any_page_holds_its_claim() {
    let queries = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let service = tower::service_fn({
        let queries = Arc::clone(&queries);
        move |request: http::Request<kube::client::Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let (items, more) = if query.contains("continue=next") {
                (json!([pod("n1")]), "")
            } else {
                (json!([]), "next")
            };
            queries.lock().push(query);
            let metadata = json!({ "resourceVersion": "1", "continue": more });
            let page = json!({ "metadata": metadata, "items": items }).to_string();
            let body = kube::client::Body::from(page.into_bytes());
            std::future::ready(Ok::<_, std::convert::Infallible>(http::Response::new(body)))
        }
    });
    let cache = Informers::new(FakeApi::new().client(), CancellationToken::new()).get();
    cache.add_index(BY_CLAIM, pod_claims::claims_of);
    let mut claim = claim(true);
    claim["metadata"]["name"] = "data".into();
    claim["metadata"]["namespace"] = "default".into();
    let claim = Arc::new(serde_json::from_value(claim).unwrap());
    let client = Client::new(service, "default");
    assert!(is_mounted(client, cache, claim).await.unwrap());
    let queries = queries.lock();
    assert_eq!(queries.len(), 2);
    assert!(
        queries.iter().all(|query| query.contains("limit=100")),
        "{queries:?}"
    );
}

#[tokio::test]
async fn a_claim_goes_at_once_when_no_pod_is_on_a_node() {
    let api = FakeApi::new();
    api.put(CLAIM, claim(true));
    api.put(POD, pod(""));
    let site = start(api, run_claims);
    site.goes(CLAIM).await;
}

#[tokio::test]
async fn a_volume_stays_while_it_is_bound() {
    let bound = |phase: &str| {
        let rest = json!({ "spec": {}, "status": { "phase": phase } });
        object("kubernetes.io/pv-protection", true, rest)
    };
    let api = FakeApi::new();
    api.put(VOLUME, bound("Bound"));
    let site = start(api, run_volumes);
    site.has_looked("/api/v1/persistentvolumes/other", json!({ "spec": {} }))
        .await;
    assert_eq!(site.finalizers(VOLUME), ["kubernetes.io/pv-protection"]);
    site.api.put(VOLUME, bound("Released"));
    site.goes(VOLUME).await;
}

#[tokio::test]
async fn a_class_stays_while_a_claim_or_a_volume_names_it() {
    let rest = || json!({ "driverName": "d" });
    let api = FakeApi::new();
    api.put(CLASS, object("kubernetes.io/vac-protection", true, rest()));
    let names = json!({ "spec": { "volumeAttributesClassName": "fast" }, "metadata": {} });
    api.put(CLAIM, names.clone());
    api.put(VOLUME, names);
    let site = start(api, run_classes);
    let other = CLASS.replace("fast", "other");
    site.has_looked(&other, rest()).await;
    assert_eq!(site.finalizers(CLASS), ["kubernetes.io/vac-protection"]);
    site.api.delete(CLAIM);
    site.has_looked(&CLASS.replace("fast", "third"), rest())
        .await;
    assert_eq!(site.finalizers(CLASS), ["kubernetes.io/vac-protection"]);
    site.api.put(VOLUME, json!({ "spec": {}, "metadata": {} }));
    site.goes(CLASS).await;
}

#[test]
fn a_pod_that_is_shut_down_holds_no_ephemeral_claim() {
    let read = |value: Value| serde_json::from_value::<Pod>(value).unwrap();
    let claim: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": {
            "name": "web-v",
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u", "controller": true,
            }],
        },
    }))
    .unwrap();
    let pod = |meta: Value| {
        let mut pod = json!({
            "metadata": meta,
            "spec": {
                "containers": [],
                "nodeName": "n1",
                "volumes": [{ "name": "v", "ephemeral": {} }],
            },
        });
        pod["metadata"]["name"] = "web".into();
        read(pod)
    };
    assert!(usage::mounts(&pod(json!({ "uid": "u" })), &claim));
    assert!(!usage::mounts(&pod(json!({ "uid": "another" })), &claim));
    let shut = json!({
        "uid": "u",
        "deletionTimestamp": "2030-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 0,
    });
    assert!(!usage::mounts(&pod(shut), &claim));
}
