//! The time that is told is of the earliest change since the last look.

use super::*;
use serde_json::json;

fn service(created: &str) -> Service {
    let meta = json!({"name": "web", "namespace": "default", "creationTimestamp": created});
    serde_json::from_value(json!({ "metadata": meta })).unwrap()
}

fn pod(name: &str, since: &str) -> Arc<Pod> {
    let ready = json!([{"type": "Ready", "status": "False", "lastTransitionTime": since}]);
    let pod = json!({"metadata": {"name": name}, "status": {"conditions": ready}});
    Arc::new(serde_json::from_value(pod).unwrap())
}

#[test]
fn the_earliest_change_since_the_last_look_counts() {
    let (times, key) = (TriggerTimes::default(), ObjectKey::new("default", "web"));
    let web = service("2030-01-01T00:00:00Z");
    let next = |service: &Service, pods: &[&Arc<Pod>]| {
        let pods: Vec<Arc<Pod>> = pods.iter().map(|pod| Arc::clone(pod)).collect();
        let next = times.next(&key, service, &pods);
        next.map(|time| time.to_string())
    };
    let at = |time: &str| Some(time.to_owned());
    let a = pod("a", "2030-01-01T00:00:05Z");
    // The first look tells of the Service, whatever its pods were.
    assert_eq!(next(&web, &[&a]), at("2030-01-01T00:00:00Z"));
    assert_eq!(next(&web, &[&a]), None);
    let (b, c) = (
        pod("b", "2030-01-01T00:00:07Z"),
        pod("c", "2030-01-01T00:00:06Z"),
    );
    assert_eq!(next(&web, &[&a, &b, &c]), at("2030-01-01T00:00:06Z"));
    // One that goes has no time.
    assert_eq!(next(&web, &[&b]), None);
    let another = service("2030-01-01T00:01:00Z");
    assert_eq!(next(&another, &[&b]), at("2030-01-01T00:01:00Z"));
    times.forget(&key);
    assert_eq!(next(&web, &[]), at("2030-01-01T00:00:00Z"));
}

#[test]
fn an_old_time_is_taken_off() {
    let mut meta = ObjectMeta::default();
    annotate(&mut meta, Some("2030-01-01T00:00:05Z".parse().unwrap()));
    let annotations = meta.annotations.clone().unwrap();
    assert_eq!(annotations[LAST_CHANGE], "2030-01-01T00:00:05Z");
    annotate(&mut meta, None);
    assert_eq!(meta.annotations, None);
}
