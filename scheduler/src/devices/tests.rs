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

#[test]
fn the_newest_class_stands_behind_a_resource() {
    let class = |name: &str, second: u8| -> Arc<DeviceClass> {
        let made = format!("2030-01-01T00:00:0{second}Z");
        let class = json!({"metadata": {"name": name, "creationTimestamp": made},
            "spec": {"extendedResourceName": "example.com/gpu"}});
        Arc::new(serde_json::from_value(class).unwrap())
    };
    let mut devices = Devices::default();
    let behind = |devices: &Devices, resource: &str| {
        let class = devices.class_behind(resource)?;
        class.metadata.name.clone()
    };
    let gpu = "example.com/gpu";
    assert_eq!(behind(&devices, gpu), None);
    for (name, second, expected) in [("c", 1, "c"), ("b", 1, "b"), ("d", 2, "d"), ("a", 0, "d")] {
        devices.set_class(&class(name, second));
        assert_eq!(behind(&devices, gpu).as_deref(), Some(expected));
    }
    let implicit = "deviceclass.resource.kubernetes.io/c";
    assert_eq!(behind(&devices, implicit).as_deref(), Some("c"));
    devices.remove_class("c");
    devices.remove_class("d");
    assert_eq!(behind(&devices, implicit), None);
    assert_eq!(behind(&devices, gpu).as_deref(), Some("b"));
    assert_eq!(behind(&devices, "example.com/other"), None);
}

#[test]
fn what_is_under_way_for_a_claim_ends_with_it() {
    let mut devices = Devices::default();
    devices.set_claim(&claim("a", "1"));
    devices.begin("a", &Arc::default());
    devices.remove_claim(&claim("a", "1"));
    assert_eq!(devices.allocations().count(), 0);
}
