//! Subsets in, their canonical form out.

use super::*;
use serde_json::{Value, json};

fn check(subsets: Value, expected: Value) {
    let subsets: Vec<EndpointSubset> = serde_json::from_value(subsets).unwrap();
    let repacked = repack(&subsets);
    assert_eq!(json!(repacked), expected);
    assert_eq!(repack(&repacked), repacked, "again is the same");
}

#[test]
fn addresses_with_the_same_ports_are_together() {
    check(
        json!([
            {"addresses": [{"ip": "10.0.0.2"}], "ports": [{"port": 80, "protocol": "TCP"}]},
            {"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80, "protocol": "TCP"}]},
            {"notReadyAddresses": [{"ip": "10.0.0.3"}], "ports": [{"port": 80, "protocol": "TCP"}]},
        ]),
        json!([{
            "addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}],
            "notReadyAddresses": [{"ip": "10.0.0.3"}],
            "ports": [{"port": 80, "protocol": "TCP"}],
        }]),
    );
}

#[test]
fn ports_with_the_same_addresses_are_together() {
    let (http, https) = (
        json!({"name": "http", "port": 80, "protocol": "TCP"}),
        json!({"name": "https", "port": 443, "protocol": "TCP"}),
    );
    check(
        json!([
            {"addresses": [{"ip": "10.0.0.1"}], "ports": [http]},
            {"addresses": [{"ip": "10.0.0.1"}], "ports": [https]},
        ]),
        json!([{"addresses": [{"ip": "10.0.0.1"}], "ports": [http, https]}]),
    );
}

#[test]
fn not_ready_outweighs_ready_and_a_target_makes_another_address() {
    let of = |uid: &str| json!({"ip": "10.0.0.1", "targetRef": {"kind": "Pod", "uid": uid}});
    check(
        json!([
            {"addresses": [of("a"), of("b")], "notReadyAddresses": [of("a")]},
            {"addresses": [of("a"), {"ip": "10.0.0.1"}]},
        ]),
        json!([{
            "addresses": [{"ip": "10.0.0.1"}, of("b")],
            "notReadyAddresses": [of("a")],
        }]),
    );
}
