//! Hashes that Go made of the same objects, with upstream's libraries.

use super::*;
use serde_json::{Value, json};

fn hex(order: Order) -> String {
    format!("{:032x}", order.0)
}

fn slice_port_of(value: Value) -> String {
    hex(Order::of_slice_port(
        &serde_json::from_value(value).unwrap(),
    ))
}

fn port_of(value: Value) -> String {
    hex(Order::of_port(&serde_json::from_value(value).unwrap()))
}

fn subset_of(value: Value) -> String {
    hex(Order::of_subset(&serde_json::from_value(value).unwrap()))
}

#[test]
fn ports_are_hashed_as_go_prints_them() {
    assert_eq!(
        port_of(json!({"name": "http", "port": 80, "protocol": "TCP"})),
        "754b003f50f133a539c60d18cfb30a55"
    );
    assert_eq!(
        port_of(json!({"port": 443, "protocol": "UDP", "appProtocol": "kubernetes.io/h2c"})),
        "8e061a4b83cff9f3f75b0bffc18a5329"
    );
    assert_eq!(
        slice_port_of(json!({"name": "http", "port": 80, "protocol": "TCP"})),
        "b6c4d325122a5ba6f795b0bbffcebb6f"
    );
    assert_eq!(
        slice_port_of(json!({"name": "", "protocol": "TCP", "appProtocol": "h"})),
        "51c9480ae49095a2bb740ced00507f39"
    );
}

#[test]
fn subsets_are_hashed_as_go_prints_them() {
    let full = json!({
        "addresses": [
            {"ip": "10.0.0.1", "hostname": "a", "nodeName": "n", "targetRef":
                {"kind": "Pod", "namespace": "d", "name": "p", "uid": "u"}},
            {"ip": "10.0.0.2"},
        ],
        "ports": [
            {"name": "http", "port": 80, "protocol": "TCP"},
            {"port": 443, "protocol": "UDP", "appProtocol": "x"},
        ],
    });
    assert_eq!(subset_of(full), "6cca6ac3c9b98fc457a980eac0be28ae");
    assert_eq!(
        subset_of(json!({"notReadyAddresses": [{"ip": "fd00::1"}]})),
        "516d8fc29f71f4d66a72c644cdbb7d74"
    );
}
