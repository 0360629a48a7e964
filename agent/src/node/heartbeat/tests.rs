//! What is patched of a status that others write, too.

use super::*;

fn status(capacity: Value, allocatable: Value) -> NodeStatus {
    let status = json!({ "capacity": capacity, "allocatable": allocatable });
    serde_json::from_value(status).unwrap()
}

/// Of a node that has this, once it has looked at itself.
fn patched(old: &NodeStatus) -> Option<Value> {
    let mut new = status(json!({ "cpu": "2" }), json!({ "cpu": "1900m" }));
    object::keep_extended(&mut new, old);
    difference(old, &new, false)
}

#[test]
fn what_others_say_that_the_node_has_stays() {
    let devices = json!({ "cpu": "2", "example.com/gpu": "4" });
    let told = status(
        devices.clone(),
        json!({ "cpu": "1900m", "example.com/gpu": "4" }),
    );
    assert_eq!(patched(&told), None);
    // Said of the capacity alone: what the node has it has for pods.
    let told = status(devices, json!({ "cpu": "1900m" }));
    let added = json!({ "allocatable": { "example.com/gpu": "4" } });
    assert_eq!(patched(&told), Some(added));
}

fn at(addresses: &[(&str, &str)]) -> NodeStatus {
    let addresses = addresses
        .iter()
        .map(|(kind, address)| json!({ "type": kind, "address": address }));
    let addresses: Vec<_> = addresses.collect();
    serde_json::from_value(json!({ "addresses": addresses })).unwrap()
}

#[test]
fn an_address_outside_that_others_wrote_stays() {
    let (inside, outside) = (("InternalIP", "10.0.0.5"), ("ExternalIP", "192.0.2.5"));
    let patched = |old: &NodeStatus| {
        let mut new = at(&[inside, ("Hostname", "n1")]);
        object::keep_foreign_addresses(&mut new, old);
        difference(old, &new, false)
    };
    let told = at(&[inside, ("Hostname", "n1"), outside]);
    assert_eq!(patched(&told), None);
    let moved = at(&[("InternalIP", "10.0.0.4"), ("Hostname", "n1"), outside]);
    let addresses = json!([
        { "type": "InternalIP", "address": "10.0.0.5" },
        { "type": "Hostname", "address": "n1" },
        { "type": "ExternalIP", "address": "192.0.2.5" },
        { "$patch": "replace" },
    ]);
    assert_eq!(patched(&moved), Some(json!({ "addresses": addresses })));
}

#[test]
fn what_the_node_no_longer_has_goes() {
    let told = status(
        json!({ "cpu": "2", "hugepages-2Mi": "4Mi" }),
        json!({ "cpu": "1900m", "example.com/gpu": "4" }),
    );
    let gone = json!({
        "capacity": { "hugepages-2Mi": null },
        "allocatable": { "example.com/gpu": null },
    });
    assert_eq!(patched(&told), Some(gone));
}
