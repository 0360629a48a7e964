//! When the Lease is written, and which ones are over.

use super::*;

const BEGUN: &str = "2026-06-01T00:00:00Z";

fn at(seconds: i64) -> Timestamp {
    let begun: Timestamp = BEGUN.parse().unwrap();
    begun + SignedDuration::from_secs(seconds)
}

fn held(identity: &Identity) -> Object {
    identity.due(None, at(0)).expect("there is none")
}

#[test]
fn the_name_is_upstreams_for_the_host() {
    assert_eq!(lease_name("edge"), "apiserver-rvoqbp47iqehwp3ggqxedpes6q");
    let other = lease_name("gateway-7.example");
    assert_eq!(other, "apiserver-2ho5gbsmmdddcpktvhkzllwzpu");
}

#[test]
fn a_lease_says_who_holds_it_and_for_how_long() {
    let mut identity = Identity::new("edge");
    assert!(identity.holder.starts_with(&format!("{}_", identity.name)));
    assert_ne!(identity.holder, Identity::new("edge").holder);
    identity.holder = "apiserver-rvo_1".to_owned();
    let lease = held(&identity);
    let wanted = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {
            "name": "apiserver-rvoqbp47iqehwp3ggqxedpes6q", "namespace": "kube-system",
            "labels": {
                "apiserver.kubernetes.io/identity": "kube-apiserver",
                "kubernetes.io/hostname": "edge",
            },
        },
        "spec": {
            "holderIdentity": "apiserver-rvo_1", "leaseDurationSeconds": 3600,
            "renewTime": "2026-06-01T00:00:00.000000Z",
        },
    });
    assert_eq!(lease.to_value(), wanted);
    let lease = held(&Identity::new("-a name that is no label-"));
    assert_eq!(lease.label(HOST_LABEL), None);
    assert_eq!(lease.label(COMPONENT_LABEL), Some(COMPONENT));
}

#[test]
fn a_lease_is_written_when_a_quarter_of_its_time_is_over() {
    let identity = Identity::new("edge");
    let lease = held(&identity);
    let due = |seconds| identity.due(Some(&lease), at(seconds));
    for seconds in [0, 10, 899, -899] {
        assert_eq!(due(seconds), None, "after {seconds} s");
    }
    for seconds in [900, 3600, 1_000_000, -900] {
        let renewed = due(seconds).expect("it is due");
        assert_eq!(super::renewed(&renewed), Some(at(seconds)));
        assert_eq!(renewed.str(&["spec", "holderIdentity"]), identity.holder);
    }
}

#[test]
fn what_others_made_of_a_lease_is_mended_at_once() {
    let identity = Identity::new("edge");
    let check = |change: &dyn Fn(&mut Object)| {
        let mut lease = held(&identity);
        change(&mut lease);
        let mended = identity.due(Some(&lease), at(1)).expect("it is due");
        assert_eq!(mended.str(&["spec", "holderIdentity"]), identity.holder);
        let labels: Vec<(&str, &str)> = mended.labels().collect();
        assert!(labels.contains(&(COMPONENT_LABEL, COMPONENT)), "{labels:?}");
        assert!(!is_expired(&mended, at(3601)));
    };
    check(&|lease| lease.set(&["spec", "holderIdentity"], "before".into()));
    check(&|lease| lease.set(&["spec", "leaseDurationSeconds"], 1.into()));
    check(&|lease| drop(lease.remove(&["spec", "renewTime"])));
    check(&|lease| drop(lease.remove(&["metadata", "labels"])));
    let mut others = held(&identity);
    others.set(&["metadata", "labels", "of"], "others".into());
    assert_eq!(identity.due(Some(&others), at(1)), None);
}

#[test]
fn a_lease_is_over_when_its_time_is_or_when_it_has_none() {
    let lease = held(&Identity::new("edge"));
    for (seconds, is_over) in [(0, false), (3600, false), (3601, true), (-9, false)] {
        assert_eq!(is_expired(&lease, at(seconds)), is_over, "at {seconds} s");
    }
    for field in ["renewTime", "leaseDurationSeconds"] {
        let mut without = lease.clone();
        without.remove(&["spec", field]);
        assert!(is_expired(&without, at(0)), "without {field}");
    }
}
