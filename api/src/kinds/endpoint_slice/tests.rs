//! Printed cells and validation of an EndpointSlice.

use crate::kinds::testing::{check_errors, check_row, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn web() -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": { "name": "web-1", "namespace": "shop" },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": ["10.42.0.2"] }, { "addresses": ["10.42.0.3"] }],
        "ports": [{ "port": 80 }, { "name": "any" }],
    })
}

#[test]
fn printed() {
    check_row(
        "endpointslices",
        web(),
        0,
        expect![[r#"
        Name: web-1
        AddressType: IPv4
        Ports: 80,any
        Endpoints: 10.42.0.2,10.42.0.3
        Age: <unknown>"#]],
    );
    let mut empty = web();
    empty["endpoints"] = json!([]);
    empty["ports"] = json!([]);
    check_row(
        "endpointslices",
        empty,
        0,
        expect![[r#"
        Name: web-1
        AddressType: IPv4
        Ports: <unset>
        Endpoints: <unset>
        Age: <unknown>"#]],
    );
}

#[test]
fn addresses_are_of_their_type() {
    let mut bad = web();
    bad["endpoints"] = json!([
        {},
        { "addresses": ["2001:db8::1", "10.42.0.300", "127.0.0.1"], "hostname": "a.b" },
        { "addresses": ["10.42.0.2"], "hints": { "forZones": [{ "name": "a" }, { "name": "a" }] } },
    ]);
    bad["ports"] = json!([{ "name": "a" }, { "name": "a", "protocol": "X" }]);
    check_errors(
        "endpointslices",
        bad,
        expect![[r#"
        ports[1].name: Duplicate value: "a"
        ports[1].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"
        endpoints[0].addresses: Required value: must contain at least 1 address
        endpoints[1].addresses: Invalid value: "2001:db8::1": must be an IPv4 address
        endpoints[1].addresses[1]: Invalid value: "10.42.0.300": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
        endpoints[1].addresses[2]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)
        endpoints[1].hostname: Invalid value: "a.b": must not contain dots
        endpoints[2].hints.forZones[1].name: Duplicate value: "a""#]],
    );
}

#[test]
fn the_type_stays() {
    let mut new = web();
    new["addressType"] = "FQDN".into();
    update_errors(
        "endpointslices",
        new,
        web(),
        Part::Main,
        expect![[r#"addressType: Invalid value: "FQDN": field is immutable"#]],
    );
}
