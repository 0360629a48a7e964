//! What is malformed lets nothing pass.

use super::*;
use serde_json::json;

#[test]
fn what_is_not_understood_lets_nothing_pass() {
    let spec = json!({
        "podSelector": {},
        "ingress": [
            { "from": [{ "ipBlock": { "cidr": "10.0.0.0/8", "except": ["nowhere"] } }] },
            { "from": [{ "ipBlock": { "cidr": "nowhere" } }] },
            { "from": [{}] },
            { "ports": [{ "port": 70000 }, { "protocol": "ICMP" }] },
        ],
    });
    let policy = policy("shop", spec).unwrap();
    let nobody = Rule {
        peers: Peers::Some {
            pods: Box::default(),
            blocks: Box::default(),
        },
        ports: None,
    };
    let at_no_port = Rule {
        peers: Peers::Everyone,
        ports: Some(Box::default()),
    };
    let expected = [nobody.clone(), nobody.clone(), nobody, at_no_port];
    assert_eq!(policy.ingress.as_deref(), Some(&expected[..]));
    assert_eq!(super::policy("shop", json!({ "ingress": 7 })), None);
}

#[test]
fn selectors_that_ask_the_same_are_one() {
    let of = |selector: serde_json::Value| {
        let spec = json!({ "podSelector": selector });
        policy("shop", spec).unwrap().pods
    };
    let by_label = of(json!({ "matchLabels": { "a": "1", "b": "2" } }));
    let by_expression = of(json!({ "matchExpressions": [
        { "key": "b", "operator": "In", "values": ["2"] },
        { "key": "a", "operator": "In", "values": ["1", "1"] },
    ] }));
    assert_eq!(by_label, by_expression);
    let unknown = of(json!({ "matchExpressions": [{ "key": "a", "operator": "Gt" }] }));
    assert!(!unknown.has(&Labels::of([("a", "1")])));
}
