//! Claims and volumes as text in, the volume that is chosen out.
//!
//! `claim [size=1Gi] [class=C] [modes=RWO,RWX] [block] [labels=a]`, then volumes in the same
//! words, with `held=NAME[/UID]`, `phase=P`, `going` and `on=NODE` besides.

use std::sync::Arc;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;

fn option<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().find_map(|word| match word.split_once('=') {
        Some((key, value)) => (key == name).then_some(value),
        None => (*word == name).then_some(""),
    })
}

fn common(words: &[&str]) -> Value {
    let modes: Vec<&str> = option(words, "modes").unwrap_or("RWO").split(',').collect();
    let mode = option(words, "block").map_or("Filesystem", |_| "Block");
    let mut spec = json!({"accessModes": modes, "volumeMode": mode});
    if let Some(class) = option(words, "class") {
        spec["storageClassName"] = json!(class);
    }
    if let Some(class) = option(words, "attributes") {
        spec["volumeAttributesClassName"] = json!(class);
    }
    spec
}

fn claim(words: &[&str]) -> PersistentVolumeClaim {
    let mut spec = common(words);
    let size = option(words, "size").unwrap_or("1Gi");
    spec["resources"] = json!({"requests": {"storage": size}});
    if let Some(label) = option(words, "labels") {
        spec["selector"] = json!({"matchLabels": {"is": label}});
    }
    let meta = json!({"name": "data", "namespace": "default", "uid": "u1"});
    serde_json::from_value(json!({"metadata": meta, "spec": spec})).unwrap()
}

fn volume(name: &str, words: &[&str]) -> Arc<PersistentVolume> {
    let mut spec = common(words);
    let size = option(words, "size").unwrap_or("1Gi");
    spec["capacity"] = json!({"storage": size});
    if let Some(held) = option(words, "held") {
        let (name, uid) = held.split_once('/').unwrap_or((held, ""));
        spec["claimRef"] = json!({"namespace": "default", "name": name, "uid": uid});
    }
    if let Some(node) = option(words, "on") {
        let one = json!({"key": "host", "operator": "In", "values": [node]});
        let terms = json!([{"matchExpressions": [one]}]);
        spec["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": terms}});
    }
    let mut meta = json!({"name": name});
    if let Some(label) = option(words, "labels") {
        meta["labels"] = json!({"is": label});
    }
    if option(words, "going").is_some() {
        meta["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
    }
    let phase = option(words, "phase").unwrap_or("Available");
    let value = json!({"metadata": meta, "spec": spec, "status": {"phase": phase}});
    Arc::new(serde_json::from_value(value).unwrap())
}

/// The volume that is taken, and why the first one is not, if the claim named it.
fn check(text: &str, expected: Expect) {
    let (mut wanted, mut volumes) = (claim(&[]), Vec::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["claim", options @ ..] => wanted = claim(options),
            [name, options @ ..] => volumes.push(volume(name, options)),
            [] => {}
        }
    }
    let wanted = Wanted::by(&wanted);
    let name = |volume: &PersistentVolume| volume.metadata.name.clone().unwrap();
    let held = wanted.held(&volumes).map(|one| name(one) + " (held)");
    let taken = held.or_else(|| wanted.best(&volumes, |_| true).map(name));
    let first = volumes.first().and_then(|first| wanted.mismatch(first));
    let said = [
        taken.unwrap_or("none".to_owned()),
        first.unwrap_or_default(),
    ];
    expected.assert_eq(said.join(", ").trim_end_matches(", "));
}

#[test]
fn the_smallest_that_is_large_enough_is_taken() {
    check(
        "claim size=1Gi\na size=10Gi\nb size=1Gi\nc size=1024Mi",
        expect!["b"],
    );
    check(
        "claim size=2Gi\na size=1Gi",
        expect!["none, requested PV is too small"],
    );
}

#[test]
fn one_with_fewer_other_modes_comes_before_a_smaller_one() {
    check(
        "claim modes=RWO\na size=1Gi modes=RWO,RWX\nb size=5Gi modes=RWO",
        expect!["b"],
    );
    check(
        "claim modes=RWX\na modes=RWO\nb modes=RWO,RWX",
        expect!["b, incompatible accessMode"],
    );
}

#[test]
fn class_mode_attributes_and_labels_must_agree() {
    check(
        "claim class=gold\na\nb class=gold",
        expect!["b, storageClassName does not match"],
    );
    check(
        "claim\na class=gold",
        expect!["none, storageClassName does not match"],
    );
    check(
        "claim block\na\nb block",
        expect!["b, incompatible volumeMode"],
    );
    check(
        "claim attributes=x\na\nb attributes=x",
        expect!["b, volumeAttributesClassName does not match"],
    );
    // Labels are for those that name no volume.
    check("claim labels=fast\na\nb labels=fast", expect!["b"]);
}

#[test]
fn only_available_ones_are_taken() {
    check(
        "claim\na phase=Pending\nb phase=Released\nc phase=Failed\nd phase=Bound",
        expect!["none"],
    );
    check(
        "claim\na going",
        expect![[r#"none, the volume is marked for deletion "a""#]],
    );
    check("claim\na held=other", expect!["none"]);
}

#[test]
fn one_that_is_held_for_the_claim_is_taken_whatever_else_there_is() {
    check("claim\na\nb size=10Gi held=data", expect!["b (held)"]);
    check(
        "claim\na\nb size=10Gi held=data/u1 phase=Bound",
        expect!["b (held)"],
    );
    check("claim\na\nb held=data/u2", expect!["a"]);
    check(
        "claim size=2Gi\na held=data",
        expect!["none, requested PV is too small"],
    );
}

#[test]
fn a_volume_is_reached_from_the_nodes_of_its_affinity() {
    let bound = volume("a", &["on=n1"]);
    let reaches = |volume, host: Option<&'static str>, name| {
        is_reachable(volume, |key| host.filter(|_| key == "host"), name)
    };
    assert!(reaches(&bound, Some("n1"), "n1"));
    assert!(!reaches(&bound, Some("n2"), "n2"));
    assert!(!reaches(&bound, None, "n1"));
    assert!(reaches(&volume("b", &[]), None, "n1"));
}

#[test]
fn the_newest_default_class_counts() {
    let class = |name: &str, made: &str, mark: &str| {
        let meta = json!({"name": name, "creationTimestamp": made, "annotations":
            {"storageclass.kubernetes.io/is-default-class": mark}});
        let value = json!({"metadata": meta, "provisioner": "p"});
        Arc::new(serde_json::from_value::<StorageClass>(value).unwrap())
    };
    let name = |classes: &[Arc<StorageClass>]| {
        default_class(classes).map(|class| class.metadata.name.clone().unwrap())
    };
    let (old, new) = ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z");
    let all = [
        class("old", old, "true"),
        class("b", new, "true"),
        class("a", new, "true"),
        class("not", "2026-03-01T00:00:00Z", "false"),
    ];
    assert_eq!(name(&all).as_deref(), Some("a"));
    assert_eq!(name(&all[3..]), None);
}

#[test]
fn a_volume_says_who_bound_it() {
    let bound = |words: &[&str]| {
        let bound = bound_to(&volume("a", words), &claim(&[]));
        let by = annotation(&bound.metadata, BOUND_BY_CONTROLLER).unwrap_or("no");
        let held = claim_ref(&bound).unwrap();
        let kind = held.kind.clone().unwrap_or_default();
        format!("{by} {} {kind}", held.uid.as_deref().unwrap())
    };
    assert_eq!(bound(&[]), "yes u1 PersistentVolumeClaim");
    assert_eq!(bound(&["held=data"]), "no u1 PersistentVolumeClaim");
    assert_eq!(bound(&["held=data/u1"]), "no u1 ");
}
