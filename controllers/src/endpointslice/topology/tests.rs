//! Which nodes count, and by how much.

use super::*;
use serde_json::{Value, json};

fn node(cpu: &str, labels: &Value, ready: &str) -> Arc<Node> {
    let node = json!({
        "metadata": {"name": "n", "labels": labels},
        "status": {"allocatable": {"cpu": cpu}, "conditions": [{"type": "Ready", "status": ready}]},
    });
    Arc::new(serde_json::from_value(node).unwrap())
}

fn in_zone(cpu: &str, zone: &str) -> Arc<Node> {
    node(cpu, &json!({ "topology.kubernetes.io/zone": zone }), "True")
}

#[test]
fn zones_have_the_part_of_their_nodes() {
    let nodes = [
        in_zone("1", "a"),
        in_zone("1500m", "b"),
        in_zone("1500m", "b"),
        node(
            "64",
            &json!({ "topology.kubernetes.io/zone": "c" }),
            "False",
        ),
        node(
            "64",
            &json!({ "node-role.kubernetes.io/control-plane": "" }),
            "True",
        ),
    ];
    let expected = [("a".to_owned(), 0.25), ("b".to_owned(), 0.75)];
    assert_eq!(ratios(&nodes), Some(BTreeMap::from(expected)));
}

/// As much as a node may say that it has, of which not even two can be added up in 64 bits.
#[test]
fn nodes_of_any_size_are_added_up() {
    let vast = |zone| in_zone("9e15", zone);
    let nodes = [vast("a"), vast("a"), vast("a"), vast("b")];
    let expected = [("a".to_owned(), 0.75), ("b".to_owned(), 0.25)];
    assert_eq!(ratios(&nodes), Some(BTreeMap::from(expected)));
}

#[test]
fn one_node_that_does_not_say_spoils_it() {
    let good = [in_zone("1", "a"), in_zone("1", "b")];
    assert!(ratios(&good).is_some());
    for bad in [
        node("1", &json!({}), "True"),
        in_zone("1", ""),
        in_zone("0", "a"),
    ] {
        assert_eq!(ratios(&[good[0].clone(), good[1].clone(), bad]), None);
    }
    assert_eq!(ratios(&good[..1]), None);
    assert_eq!(ratios(&[]), None);
}

#[test]
fn a_zone_whose_least_cannot_be_given_has_no_hints() {
    let even = |count: usize| {
        let zone = |number: usize| (format!("z{number}"), 1.0 / count as f64);
        (0..count).map(zone).collect::<BTreeMap<_, _>>()
    };
    // Of four endpoints each of three zones would need two.
    let error = shares::shares(Some(&even(3)), 4).unwrap_err();
    assert!(
        error.starts_with("Unable to allocate minimum required endpoints"),
        "{error}"
    );
    assert!(error.ends_with("(4 endpoints, 3 zones)"), "{error}");
    let shares = shares::shares(Some(&even(3)), 3).unwrap();
    assert!(shares.values().all(|share| share.maximum == 1));
}
