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
