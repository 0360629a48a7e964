//! What changes of pods do to queue and cache.

use super::*;
use crate::framework::Profile;
use serde_json::{Value, json};

fn world() -> World {
    let profiles = Profiles::new([Profile::new("default-scheduler", Vec::new())]);
    World {
        views: Views::default(),
        queue: Arc::new(Queue::of(
            profiles.clone(),
            crate::queue::Backoff::default(),
        )),
        profiles,
    }
}

fn pod(label: &str, spec: Value) -> Arc<Pod> {
    let metadata = json!({"name": "p", "namespace": "default", "uid": "p", "labels": {"a": label}});
    let pod = json!({"metadata": metadata, "spec": spec});
    Arc::new(serde_json::from_value(pod).unwrap())
}

/// Of a pod on a node: of its sidecar, its container and itself.
fn asks(sidecar: &str, container: &str, all: &str) -> Value {
    let cpu = |much: &str| json!({"requests": {"cpu": much}});
    json!({
        "nodeName": "n",
        "resources": cpu(all),
        "initContainers": [{"name": "s", "restartPolicy": "Always", "resources": cpu(sidecar)}],
        "containers": [{"name": "c", "resources": cpu(container)}],
    })
}

#[test]
fn a_resize_of_any_part_of_a_pod_is_told() {
    let before = pod("", asks("2", "2", "4"));
    let is_told = |spec| updated(&before, &PodInfo::new(pod("", spec)).into()).is_some();
    assert!(is_told(asks("1", "2", "4")), "of a sidecar");
    assert!(is_told(asks("2", "1", "4")), "of a container");
    assert!(is_told(asks("2", "2", "3")), "of the pod as a whole");
    assert!(!is_told(asks("2", "2", "4")));
}

#[tokio::test(start_paused = true)]
async fn a_pod_changed_while_it_is_bound_is_tried_again_as_it_is_by_then() {
    let world = world();
    let (old, new) = (pod("old", json!({})), pod("new", json!({})));
    world.pod(&Change::Added(Arc::clone(&old)), Instant::now());
    let attempt = world.queue.next().await;
    let cache = &world.views.cache;
    cache.lock().assume(Arc::clone(&attempt.pod), "n");
    world.pod(&Change::Updated { old, new }, Instant::now());
    cache.lock().forget("p");
    world.queue.retry(&attempt, Instant::now());
    let labels = world.queue.next().await.pod.labels().cloned();
    assert_eq!(labels.unwrap()["a"], "new");
}

#[tokio::test(start_paused = true)]
async fn a_pod_changed_after_it_was_bound_stays_out_of_the_queue() {
    let world = world();
    let (old, new) = (pod("old", json!({})), pod("new", json!({})));
    world.pod(&Change::Added(Arc::clone(&old)), Instant::now());
    let attempt = world.queue.next().await;
    let cache = &world.views.cache;
    cache.lock().assume(Arc::clone(&attempt.pod), "n");
    cache.lock().finish_binding("p", Instant::now());
    world.queue.done("p");
    world.pod(&Change::Updated { old, new }, Instant::now());
    assert!(!world.queue.is_known("p") && cache.lock().is_assumed("p"));
    let long = std::time::Duration::from_secs(60 * 60);
    let expired = cache.lock().expire(Instant::now() + long);
    let labels = expired[0].labels().cloned();
    assert_eq!(labels.unwrap()["a"], "new", "if nobody confirms it");
}
