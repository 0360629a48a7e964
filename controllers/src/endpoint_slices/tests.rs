//! What was written, what the watch shows, and whose turn it is.

use std::time::Duration;

use super::*;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

const MANAGER: &str = "us";

fn slice(uid: &str, generation: i64, manager: &str, service: &str) -> EndpointSlice {
    serde_json::from_value(json!({
        "metadata": {
            "name": uid, "namespace": "default", "uid": uid, "generation": generation,
            "labels": { SERVICE_NAME: service, MANAGED_BY: manager },
        },
        "addressType": "IPv4", "endpoints": [], "ports": [],
    }))
    .unwrap()
}

fn shown(slice: &EndpointSlice) -> Arc<SliceMeta> {
    Arc::new(serde_json::from_value(json!({ "metadata": slice.metadata })).unwrap())
}

fn web() -> ObjectKey {
    ObjectKey::new("default", "web")
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_lags_is_noticed() {
    let tracker = Tracker::default();
    assert!(!tracker.is_stale(&web(), &[]));
    let old = slice("a", 1, MANAGER, "web");
    let new = slice("a", 2, MANAGER, "web");
    tracker.wrote(&new);
    assert!(tracker.is_stale(&web(), &[]), "it is not shown yet");
    assert!(tracker.is_stale(&web(), &[shown(&old)]), "an older one is");
    assert!(!tracker.is_stale(&web(), &[shown(&new)]));
    tracker.deleting(&new);
    assert!(
        tracker.is_stale(&web(), &[shown(&new)]),
        "it is shown still"
    );
    let mut dying = new.clone();
    let at = "2030-01-01T00:00:00Z".parse().unwrap();
    dying.metadata.deletion_timestamp = Some(Time(at));
    let is_stale = tracker.is_stale(&web(), &[shown(&dying)]);
    assert!(!is_stale, "a finalizer holds it, and that is shown");
    assert!(!tracker.is_stale(&web(), &[]));
    tracker.forget(&web());
    assert!(!tracker.is_stale(&web(), &[shown(&new)]));
}

#[tokio::test(start_paused = true)]
async fn what_the_watch_never_shows_is_not_waited_for_for_ever() {
    let tracker = Tracker::default();
    tracker.wrote(&slice("a", 1, MANAGER, "web"));
    tokio::time::advance(Duration::from_secs(299)).await;
    assert!(tracker.is_stale(&web(), &[]));
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(!tracker.is_stale(&web(), &[]));
}

#[tokio::test]
async fn only_what_others_did_is_looked_at() {
    let tracker = Tracker::default();
    let touched = |change: Change<SliceMeta>| {
        let keys = touched(&tracker, MANAGER, &change);
        keys.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let own = slice("a", 2, MANAGER, "web");
    assert_eq!(touched(Change::Added(shown(&own))), ["default/web"]);
    assert_eq!(
        touched(Change::Added(shown(&slice("b", 1, "they", "web")))),
        [""; 0]
    );
    tracker.wrote(&own);
    assert_eq!(touched(Change::Added(shown(&own))), [""; 0]);
    let update = |old: &EndpointSlice, new: &EndpointSlice| Change::Updated {
        old: shown(old),
        new: shown(new),
    };
    assert_eq!(touched(update(&own, &own)), [""; 0]);
    let foreign = slice("a", 3, MANAGER, "web");
    assert_eq!(touched(update(&own, &foreign)), ["default/web"]);
    let moved = slice("a", 3, MANAGER, "db");
    assert_eq!(touched(update(&own, &moved)), ["default/db", "default/web"]);
    let taken = slice("a", 3, "they", "web");
    assert_eq!(touched(update(&own, &taken)), ["default/web"]);
    // Deleted by somebody; then by us.
    assert_eq!(touched(Change::Deleted(shown(&own))), ["default/web"]);
    tracker.deleting(&own);
    assert_eq!(touched(Change::Deleted(shown(&own))), [""; 0]);
    assert!(!tracker.has(&own.metadata));
}

#[test]
fn a_long_name_has_no_room_for_a_dash() {
    assert_eq!(name_prefix("web"), "web-");
    let long = "a".repeat(253);
    assert_eq!(name_prefix(&long), long);
}
