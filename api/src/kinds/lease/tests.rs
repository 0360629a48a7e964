//! Printed cells, validation and durability of a Lease.

use crate::kinds::testing::{check_errors, check_row, object, resource};
use crate::resource::{Durability, Part};
use expect_test::expect;
use serde_json::{Value, json};

fn lease(namespace: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "edge-1", "namespace": namespace },
        "spec": { "holderIdentity": "edge-1", "leaseDurationSeconds": 40 },
    })
}

#[test]
fn printed() {
    check_row(
        "leases",
        lease("a"),
        0,
        expect![[r#"
        Name: edge-1
        Holder: edge-1
        Age: <unknown>"#]],
    );
}

#[test]
fn durations_and_transitions() {
    let mut bad = lease("a");
    bad["spec"]["leaseDurationSeconds"] = 0.into();
    bad["spec"]["leaseTransitions"] = (-1).into();
    check_errors(
        "leases",
        bad,
        expect![[r#"
        spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0
        spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"#]],
    );
}

#[test]
fn leases_of_nodes_are_lazy() {
    let rules = resource("leases").rules;
    let durability = |ns: &str| rules.durability(&object(lease(ns)), None, Part::Main);
    assert_eq!(durability("kube-node-lease"), Durability::Lazy);
    assert_eq!(durability("kube-system"), Durability::Synced);
}

#[test]
fn a_lease_of_a_node_that_is_renewed_waits_longest() {
    let rules = resource("leases").rules;
    let durability = |ns: &str, renewed: &str| {
        let mut new = lease(ns);
        new["spec"]["renewTime"] = renewed.into();
        rules.durability(&object(new), Some(&object(lease(ns))), Part::Main)
    };
    let later = "2030-01-01T00:00:10.000000Z";
    assert_eq!(durability("kube-node-lease", later), Durability::Renewal);
    assert_eq!(durability("kube-system", later), Durability::Synced);
    // Such as its deletion, or another holder.
    let old = object(lease("kube-node-lease"));
    let durability = rules.durability(&old, Some(&old), Part::Main);
    assert_eq!(durability, Durability::Lazy);
}
