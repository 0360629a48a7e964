//! From shares to seats.

use super::*;
use serde_json::{Value, json};

fn level(name: &str, spec: Value) -> Option<LevelSpec> {
    let object = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
        "metadata": { "name": name, "uid": "u" }, "spec": spec,
    });
    LevelSpec::of(&Object::from_value(object).unwrap())
}

fn limited(shares: u32, lendable: u32, borrowing: Option<u32>) -> LevelSpec {
    let mut spec = json!({ "type": "Limited", "limited": {
        "nominalConcurrencyShares": shares, "lendablePercent": lendable,
        "limitResponse": { "type": "Queue", "queuing": {
            "queues": 64, "handSize": 6, "queueLengthLimit": 50,
        } },
    } });
    if let Some(borrowing) = borrowing {
        spec["limited"]["borrowingLimitPercent"] = borrowing.into();
    }
    level("l", spec).unwrap()
}

#[test]
fn seats_follow_shares_as_upstream_counts_them() {
    // Upstream's own figures for node-high among 600 seats and 245 shares.
    let seats = limited(40, 25, None).seats(600, 245);
    assert_eq!(
        seats,
        Seats {
            nominal: 98,
            least: 73,
            most: 698,
            width_max: 15
        }
    );
    let bounded = limited(10, 0, Some(50)).seats(300, 245);
    assert_eq!((bounded.nominal, bounded.least, bounded.most), (13, 13, 20));
    assert_eq!(bounded.width_max, 2);
    assert_eq!(limited(0, 0, None).seats(300, 245).nominal, 0);
}

#[test]
fn a_level_is_read_with_the_defaults() {
    let queue = level(
        "l",
        json!({ "type": "Limited", "limited": { "limitResponse": { "type": "Queue" } } }),
    );
    let queue = queue.unwrap();
    assert_eq!(queue.shares, 30);
    assert_eq!(
        queue.discipline,
        Discipline::Queue(Queuing {
            queues: 64,
            hand: 8,
            length_max: 50
        })
    );
    let exempt = level(EXEMPT, json!({ "type": "Exempt" })).unwrap();
    assert_eq!((exempt.shares, exempt.discipline), (0, Discipline::Exempt));
}

#[test]
fn only_exempt_is_exempt() {
    assert_eq!(level("other", json!({ "type": "Exempt" })), None);
    assert_eq!(level(EXEMPT, json!({ "type": "Limited" })), None);
}
