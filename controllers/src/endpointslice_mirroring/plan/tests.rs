//! Endpoints and their slices in, what is written out.

use super::*;
use serde_json::{Value, json};

fn endpoints(subsets: Value) -> Endpoints {
    serde_json::from_value(json!({
        "metadata": {
            "name": "db", "namespace": "default", "uid": "e", "labels": {"tier": "back"},
            "annotations": {"own": "kept", LAST_APPLIED: "long", LAST_CHANGE: "never"},
        },
        "subsets": subsets,
    }))
    .unwrap()
}

fn both_families() -> Value {
    json!([{
        "addresses": [{"ip": "10.0.0.1", "nodeName": "n", "hostname": "first"}],
        "notReadyAddresses": [{"ip": "fd00::1"}],
        "ports": [{"name": "sql", "port": 5432, "protocol": "TCP"}],
    }])
}

/// As the server has what was made.
fn stored(created: &[EndpointSlice]) -> Vec<EndpointSlice> {
    let name = |(number, slice): (usize, &EndpointSlice)| {
        let mut slice = slice.clone();
        slice.metadata.name = Some(format!("db-{number}"));
        slice
    };
    created.iter().enumerate().map(name).collect()
}

fn names(slices: &[EndpointSlice]) -> Vec<&str> {
    let names = slices.iter().map(|one| one.metadata.name.as_deref());
    names.map(Option::unwrap_or_default).collect()
}

#[test]
fn each_family_and_set_of_ports_is_a_slice() {
    let plan = plan(&endpoints(both_families()), Vec::new());
    assert_eq!((plan.create.len(), plan.events.len()), (2, 0));
    assert_eq!(
        json!(plan.create[0]),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "generateName": "db-", "namespace": "default",
                "labels": {"tier": "back", "kubernetes.io/service-name": "db",
                           "endpointslice.kubernetes.io/managed-by": MANAGER},
                "annotations": {"own": "kept"},
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "Endpoints", "name": "db", "uid": "e",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "addressType": "IPv4",
            "endpoints": [{
                "addresses": ["10.0.0.1"], "conditions": {"ready": true},
                "nodeName": "n", "hostname": "first",
            }],
            "ports": [{"name": "sql", "port": 5432, "protocol": "TCP"}],
        })
    );
    let second = &plan.create[1];
    assert_eq!(second.address_type, "IPv6");
    assert_eq!(
        json!(second.endpoints),
        json!([{"addresses": ["fd00::1"], "conditions": {"ready": false}}])
    );
}

#[test]
fn what_is_in_order_is_left_and_what_is_not_is_written() {
    let first = plan(&endpoints(both_families()), Vec::new());
    let slices = stored(&first.create);
    let again = plan(&endpoints(both_families()), slices.clone());
    assert_eq!(names(&again.in_order), ["db-0", "db-1"]);
    assert!(again.create.is_empty() && again.update.is_empty() && again.delete.is_empty());
    // One family is gone; the other's slice says something else.
    let other = json!([{
        "notReadyAddresses": [{"ip": "10.0.0.1", "nodeName": "n", "hostname": "first"}],
        "ports": [{"name": "sql", "port": 5432, "protocol": "TCP"}],
    }]);
    let changed = plan(&endpoints(other), slices.clone());
    assert_eq!(names(&changed.update), ["db-0"]);
    assert_eq!(names(&changed.delete), ["db-1"]);
    // Labels and annotations are mirrored, and so is who the owner is.
    for change in [
        |one: &mut Endpoints| one.metadata.labels = None,
        |one: &mut Endpoints| one.metadata.annotations = None,
        |one: &mut Endpoints| one.metadata.uid = Some("another".to_owned()),
    ] {
        let mut other = endpoints(both_families());
        change(&mut other);
        assert_eq!(
            names(&plan(&other, slices.clone()).update),
            ["db-0", "db-1"]
        );
    }
}

#[test]
fn a_slice_that_goes_takes_the_place_of_one_that_comes() {
    let first = plan(&endpoints(both_families()), Vec::new());
    let mut subsets = both_families();
    subsets[0]["ports"][0]["port"] = json!(5433);
    let changed = plan(&endpoints(subsets), stored(&first.create));
    assert!(changed.create.is_empty() && changed.delete.is_empty());
    assert_eq!(names(&changed.update), ["db-0", "db-1"]);
    assert_eq!(
        changed.update[0].ports.as_ref().unwrap()[0].port,
        Some(5433)
    );
}

#[test]
fn too_many_and_bad_addresses_are_told() {
    let address = |number: usize| json!({"ip": format!("10.0.{}.{}", number / 250, number % 250)});
    let mut all: Vec<Value> = (0..1003).map(address).collect();
    all.insert(0, json!({"ip": "0.bad"}));
    let plan = plan(&endpoints(json!([{ "addresses": all }])), Vec::new());
    assert_eq!(endpoints_of(&plan.create[0]).len(), 1000);
    let told: Vec<String> = plan
        .events
        .iter()
        .map(|event| format!("{}: {}", event.reason, event.message))
        .collect();
    assert_eq!(
        told,
        [
            "InvalidIPAddress: Skipped 1 invalid IP addresses when mirroring to EndpointSlices",
            "TooManyAddressesToMirror: A max of 1000 addresses can be mirrored to EndpointSlices \
             per Endpoints subset. 4 addresses were skipped",
        ]
    );
}

#[test]
fn endpoints_without_addresses_have_no_slice() {
    let first = plan(&endpoints(both_families()), Vec::new());
    let none = plan(&endpoints(Value::Null), stored(&first.create));
    assert_eq!(names(&none.delete), ["db-0", "db-1"]);
    assert!(none.create.is_empty() && none.update.is_empty());
}
