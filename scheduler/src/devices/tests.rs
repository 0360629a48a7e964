//! What is known of claims ahead of the API.

use super::*;
use serde_json::json;

fn claim(uid: &str, version: &str) -> Arc<ResourceClaim> {
    let metadata = json!({"name": "one", "namespace": "default", "uid": uid,
        "resourceVersion": version});
    Arc::new(serde_json::from_value(json!({"metadata": metadata, "spec": {}})).unwrap())
}

#[test]
fn what_was_written_is_not_forgotten_for_an_older_state() {
    let mut devices = Devices::default();
    let key = ObjectKey::new("default", "one");
    let version = |devices: &Devices| {
        let claim = devices.claim(&key).unwrap();
        claim.metadata.resource_version.clone().unwrap()
    };
    devices.set_claim(&claim("a", "10"));
    devices.set_claim(&claim("a", "9"));
    assert_eq!(version(&devices), "10", "the informer is behind");
    devices.set_claim(&claim("a", "11"));
    assert_eq!(version(&devices), "11");
    devices.set_claim(&claim("b", "5"));
    assert_eq!(version(&devices), "5", "another claim of the name");
}

#[test]
fn an_allocation_counts_once() {
    let mut devices = Devices::default();
    let mut shown = ResourceClaim::clone(&claim("a", "2"));
    shown.status.get_or_insert_default().allocation = Some(AllocationResult::default());
    devices.begin("a", &Arc::default());
    assert_eq!(devices.allocations().count(), 1);
    devices.set_claim(&Arc::new(shown));
    assert_eq!(devices.allocations().count(), 1);
    devices.end("a");
    assert_eq!(devices.allocations().count(), 1);
}

#[test]
fn a_claim_that_is_gone_does_not_come_back_with_an_answer() {
    let mut devices = Devices::default();
    let key = ObjectKey::new("default", "one");
    let shown = claim("a", "1");
    devices.set_claim(&shown);
    devices.written(&claim("a", "2"));
    let version = &devices.claim(&key).unwrap().metadata.resource_version;
    assert_eq!(version.as_deref(), Some("2"));
    devices.remove_claim(&shown);
    devices.written(&claim("a", "3"));
    assert_eq!(devices.claim(&key), None);
    devices.set_claim(&claim("b", "4"));
    devices.written(&claim("a", "5"));
    let uid = &devices.claim(&key).unwrap().metadata.uid;
    assert_eq!(uid.as_deref(), Some("b"), "another one of its name");
}
