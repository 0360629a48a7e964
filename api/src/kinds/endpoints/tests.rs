//! Printed cells and validation of Endpoints.

use crate::kinds::testing::{check_errors, check_row};
use expect_test::expect;
use serde_json::{Value, json};

fn web() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": { "name": "web", "namespace": "shop" },
        "subsets": [{
            "addresses": [
                { "ip": "10.42.0.2" }, { "ip": "10.42.0.3" }, { "ip": "10.42.0.4" },
                { "ip": "10.42.0.5" },
            ],
            "ports": [{ "port": 80 }],
        }],
    })
}

#[test]
fn printed() {
    check_row(
        "endpoints",
        web(),
        0,
        expect![[r#"
        Name: web
        Endpoints: 10.42.0.2:80,10.42.0.3:80,10.42.0.4:80 + 1 more...
        Age: <unknown>"#]],
    );
}

#[test]
fn addresses_can_be_reached() {
    let mut bad = web();
    bad["subsets"] = json!([
        {},
        {
            "addresses": [{ "ip": "127.0.0.1" }, { "ip": "x", "hostname": "a.b" }],
            "notReadyAddresses": [{ "ip": "169.254.0.1", "nodeName": "-" }],
            "ports": [{ "port": 0 }, { "name": "b", "port": 1, "protocol": "X" }],
        },
    ]);
    check_errors(
        "endpoints",
        bad,
        expect![[r#"
        subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`
        subsets[1].addresses[0].ip: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)
        subsets[1].addresses[1].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
        subsets[1].addresses[1].hostname: Invalid value: "a.b": must not contain dots
        subsets[1].addresses[1].ip: Invalid value: "x": must be a valid IP address
        subsets[1].notReadyAddresses[0].nodeName: Invalid value: "-": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        subsets[1].notReadyAddresses[0].ip: Invalid value: "169.254.0.1": may not be in the link-local range (169.254.0.0/16, fe80::/10)
        subsets[1].ports[0].name: Required value
        subsets[1].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive
        subsets[1].ports[1].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP""#]],
    );
}
