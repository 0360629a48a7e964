//! Defaults, validation, warnings and printed cells of a NetworkPolicy.

use crate::kinds::testing::{check_errors, check_row, check_spec, object, resource, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

const PLURAL: &str = "networkpolicies";

fn policy(spec: Value) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": { "name": "web", "creationTimestamp": "1970-01-01T00:00:00Z" },
        "spec": spec,
    })
}

fn block(cidr: &str, except: &[&str]) -> Value {
    let peer = json!({ "ipBlock": { "cidr": cidr, "except": except } });
    policy(json!({ "podSelector": {}, "ingress": [{ "from": [peer] }] }))
}

#[test]
fn defaults() {
    let spec = json!({ "egress": [{ "ports": [{ "port": 53 }] }] });
    check_spec(
        PLURAL,
        policy(spec),
        expect![[r#"
        egress: [{"ports":[{"port":53,"protocol":"TCP"}]}]
        podSelector: {}
        policyTypes: ["Ingress","Egress"]"#]],
    );
}

#[test]
fn ports_and_peers() {
    let spec = json!({
        "podSelector": {}, "policyTypes": ["Sideways"],
        "ingress": [{
            "ports": [
                { "port": 70000, "protocol": "ICMP" }, { "port": "A--b", "endPort": 5 },
                { "port": 9, "endPort": 5 }, { "endPort": 5 },
            ],
            "from": [{}, { "podSelector": {}, "ipBlock": { "cidr": "10.0.0.0/8" } }],
        }],
    });
    check_errors(
        PLURAL,
        policy(spec),
        expect![[r#"
        spec.ingress[0].ports[0].protocol: Unsupported value: "ICMP": supported values: "TCP", "UDP", "SCTP"
        spec.ingress[0].ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive
        spec.ingress[0].ports[1].endPort: Invalid value: 5: may not be specified when `port` is non-numeric
        spec.ingress[0].ports[1].port: Invalid value: "A--b": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)
        spec.ingress[0].ports[1].port: Invalid value: "A--b": must not contain consecutive hyphens
        spec.ingress[0].ports[2].endPort: Invalid value: 9: must be greater than or equal to `port`
        spec.ingress[0].ports[3].endPort: Invalid value: 5: may not be specified when `port` is not specified
        spec.ingress[0].from[0]: Required value: must specify a peer
        spec.ingress[0].from[1]: Forbidden: may not specify both ipBlock and another peer
        spec.policyTypes[0]: Unsupported value: "Sideways": supported values: "Ingress", "Egress""#]],
    );
}

#[test]
fn ranges() {
    let except = ["10.1.0.0/16", "11.0.0.0/16", "10.0.0.0/8", "fd00::/64", "x"];
    check_errors(
        PLURAL,
        block("10.0.0.0/8", &except),
        expect![[r#"
        spec.ingress[0].from[0].ipBlock.except[1]: Invalid value: "11.0.0.0/16": must be a strict subset of `cidr`
        spec.ingress[0].from[0].ipBlock.except[2]: Invalid value: "10.0.0.0/8": must be a strict subset of `cidr`
        spec.ingress[0].from[0].ipBlock.except[3]: Invalid value: "fd00::/64": must be a strict subset of `cidr`
        spec.ingress[0].from[0].ipBlock.except[4]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"#]],
    );
    check_errors(
        PLURAL,
        block("10.0.0.1/8", &[]),
        expect![[
            r#"spec.ingress[0].from[0].ipBlock.cidr: Invalid value: "10.0.0.1/8": must not have bits set beyond the prefix length"#
        ]],
    );
    // What is there already stays good.
    let (old, new) = (
        block("10.0.0.1/8", &[]),
        block("10.0.0.1/8", &["10.1.0.0/16"]),
    );
    update_errors(PLURAL, new, old, Part::Main, expect![[""]]);
    let warnings = resource(PLURAL)
        .rules
        .warnings(&object(block("FD00::/8", &[])));
    assert_eq!(
        warnings,
        [
            "spec.ingress[0].from[0].ipBlock.cidr: IPv6 CIDR value \"FD00::/8\" should be in RFC \
          5952 canonical format (\"fd00::/8\")"
        ]
    );
}

#[test]
fn printed() {
    let spec = json!({ "podSelector": { "matchLabels": { "a": "b" } } });
    check_row(
        PLURAL,
        policy(spec),
        200,
        expect![[r#"
        Name: web
        Pod-Selector: a=b
        Age: 3m20s"#]],
    );
}
