//! What changes of pods do to queue and cache.

use super::*;
use crate::framework::Profile;
use crate::queue::{Attempt, Backoff};
use crate::selector::LabelSet;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

fn world() -> World {
    let profiles = Profiles::new([Profile::new("default-scheduler", Vec::new())]);
    World {
        views: Views::default(),
        queue: Arc::new(Queue::of(profiles.clone(), Backoff::default())),
        profiles,
    }
}

fn pod(label: &str, spec: Value) -> Arc<PodInfo> {
    let metadata = json!({"name": "p", "namespace": "default", "uid": "p", "labels": {"a": label}});
    let pod = json!({"metadata": metadata, "spec": spec});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    Arc::new(PodInfo::new(Arc::new(pod)))
}

/// Of a pod on a node: of its sidecar, its container and itself, where it says so.
fn asks(sidecar: &str, container: &str, all: Option<&str>) -> Value {
    let cpu = |much: &str| json!({"requests": {"cpu": much}});
    json!({
        "nodeName": "n",
        "resources": all.map(cpu),
        "initContainers": [{"name": "s", "restartPolicy": "Always", "resources": cpu(sidecar)}],
        "containers": [{"name": "c", "resources": cpu(container)}],
    })
}

#[test]
fn a_resize_that_frees_or_takes_room_is_told() {
    let is_told = |old, new| updated(&pod("", old), &pod("", new)).is_some();
    assert!(
        is_told(asks("2", "2", None), asks("1", "2", None)),
        "of a sidecar"
    );
    assert!(
        is_told(asks("2", "2", None), asks("2", "1", None)),
        "of a container"
    );
    assert!(
        is_told(asks("2", "2", Some("4")), asks("2", "2", Some("3"))),
        "of the pod"
    );
    assert!(!is_told(asks("2", "2", None), asks("2", "2", None)));
    assert!(
        !is_told(asks("2", "2", Some("4")), asks("2", "1", Some("4"))),
        "the pod's own"
    );
}

/// A pod that is assumed on a node, its attempt, and as it is shown afterwards.
async fn with_one_assumed() -> (World, Attempt, [Arc<PodInfo>; 2]) {
    let (world, old, new) = (world(), pod("old", json!({})), pod("new", json!({})));
    world.set_pod(&old, None, Instant::now());
    let attempt = world.queue.next().await;
    let assumed = Arc::clone(&attempt.pod);
    world.views.cache.lock().assume(assumed, "n");
    (world, attempt, [old, new])
}

#[tokio::test(start_paused = true)]
async fn a_pod_changed_while_it_is_bound_is_tried_again_as_it_is_by_then() {
    let (world, attempt, [old, new]) = with_one_assumed().await;
    let cache = &world.views.cache;
    world.set_pod(&new, Some(&old), Instant::now());
    cache.lock().forget("p");
    world.queue.retry(&attempt, Instant::now());
    let pod = world.queue.next().await.pod;
    assert_eq!(pod.labels().label("a"), Some("new"));
}

#[tokio::test(start_paused = true)]
async fn a_pod_changed_after_it_was_bound_stays_out_of_the_queue() {
    let (world, _, [old, new]) = with_one_assumed().await;
    let cache = &world.views.cache;
    cache.lock().finish_binding("p", Instant::now());
    world.queue.done("p");
    world.set_pod(&new, Some(&old), Instant::now());
    assert!(!world.queue.is_known("p") && cache.lock().is_assumed("p"));
    let long = std::time::Duration::from_secs(60 * 60);
    let expired = cache.lock().expire(Instant::now() + long);
    let label = expired[0].labels().label("a");
    assert_eq!(label, Some("new"), "if nobody confirms it");
}

/// Most updates of the status say how a pod fares; a resize that is done gives room back.
#[test]
fn what_a_resized_pod_gives_back_is_told() {
    let after = |cpu: &str, restarts: u32, reason: &str| {
        let pod = json!({
            "metadata": {"name": "p", "namespace": "default", "uid": "p"},
            "spec": {"nodeName": "n", "containers": [
                {"name": "c", "resources": {"requests": {"cpu": "2"}}},
            ]},
            "status": {
                "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
                "containerStatuses": [{
                    "name": "c", "image": "i", "imageID": "", "ready": true,
                    "restartCount": restarts, "resources": {"requests": {"cpu": cpu}},
                }],
            },
        });
        let pod: Pod = serde_json::from_value(pod).unwrap();
        Arc::new(PodInfo::new(Arc::new(pod)))
    };
    let is_told = |old: Arc<PodInfo>, new: Arc<PodInfo>| updated(&old, &new).is_some();
    let before = || after("3", 0, "Deferred");
    assert!(!is_told(before(), after("3", 1, "Deferred")));
    assert!(is_told(before(), after("2", 0, "Deferred")), "given back");
    let wishes = after("1", 0, "Deferred");
    assert!(is_told(wishes, after("1", 0, "Infeasible")), "never met");
}
