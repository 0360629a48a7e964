//! Upstream's scenarios: who may be with whom, and who is drawn where.

use super::*;
use crate::plugins::scene::{filter, filter_without, pod, score, world};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// `KEY OPERATOR [VALUES] by TOPOLOGY`, several with `;`, as the terms of an affinity.
fn terms(text: &str) -> Vec<Value> {
    text.split(';').map(term).collect()
}

fn term(text: &str) -> Value {
    let (who, by) = text.trim().split_once(" by ").unwrap();
    let mut words = who.split_whitespace();
    let (key, operator) = (words.next().unwrap(), words.next().unwrap());
    let one = match words.next() {
        Some(values) => {
            let values: Vec<&str> = values.split(',').collect();
            json!({"key": key, "operator": operator, "values": values})
        }
        None => json!({"key": key, "operator": operator}),
    };
    json!({"topologyKey": by, "labelSelector": {"matchExpressions": [one]}})
}

fn near(text: &str) -> Value {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    json!({"affinity": {"podAffinity": {required: terms(text)}}})
}

fn far(text: &str) -> Value {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    json!({"affinity": {"podAntiAffinity": {required: terms(text)}}})
}

/// `WEIGHT TERM`; below zero for anti-affinity.
fn preferred(text: &str) -> Value {
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for one in text.split(';') {
        let (weight, rest) = one.trim().split_once(' ').unwrap();
        let weight: i64 = weight.parse().unwrap();
        let made = json!({"weight": weight.abs(), "podAffinityTerm": term(rest)});
        if weight > 0 {
            near.push(made)
        } else {
            far.push(made)
        }
    }
    json!({"affinity": {"podAffinity": {preferred: near}, "podAntiAffinity": {preferred: far}}})
}

fn both(mut near: Value, far: &Value) -> Value {
    near["affinity"]["podAntiAffinity"] = far["affinity"]["podAntiAffinity"].clone();
    near
}

fn namespaces() -> Namespaces {
    let namespaces = Namespaces::default();
    for (name, team) in [("one", "red"), ("two", "red"), ("three", "blue")] {
        let labels = BTreeMap::from([("team".to_owned(), team.to_owned())]);
        namespaces.set(ObjectKey::new("", name), labels);
    }
    namespaces
}

fn plugin() -> InterPodAffinity {
    InterPodAffinity::new(namespaces(), Args::default())
}

fn short(said: &str) -> String {
    said.replace(REASON_AFFINITY, "lonely")
        .replace(REASON_ANTI_AFFINITY, "disliked")
        .replace(REASON_EXISTING, "refused")
}

fn check(text: &str, labels: &str, spec: Value, expected: Expect) {
    expected.assert_eq(&short(&filter(&plugin(), &pod(labels, spec), &world(text))));
}

const NODES: &str =
    "node a zone=1 region=r\nnode b zone=1 region=r\nnode c zone=2 region=r\nnode d\n";

fn on(pods: &str) -> String {
    format!("{NODES}{pods}")
}

#[test]
fn without_terms_nothing_is_asked() {
    check(&on("pod p a app=web"), "", json!({}), expect!["skipped"]);
}

#[test]
fn a_pod_goes_where_those_are_that_it_needs() {
    let with = || on("pod p a app=web\npod q c app=db");
    let web = || near("app In web,x by zone");
    check(
        &with(),
        "",
        web(),
        expect!["a fits, b fits, c lonely!, d lonely!"],
    );
    let nobody = expect!["a lonely!, b lonely!, c lonely!, d lonely!"];
    check(&with(), "", near("app In none by zone"), nobody);
    let nobody = expect!["a lonely!, b lonely!, c lonely!, d lonely!"];
    check(&with(), "ns=other", web(), nobody);
    let other = near("app NotIn web by zone");
    check(
        &with(),
        "",
        other,
        expect!["a lonely!, b lonely!, c fits, d lonely!"],
    );
    let absent = near("none DoesNotExist by region");
    check(
        &with(),
        "",
        absent,
        expect!["a fits, b fits, c fits, d lonely!"],
    );
}

#[test]
fn one_pod_must_meet_all_terms_of_affinity() {
    let all = near("app In web by zone; tier Exists by zone");
    let two = on("pod p a app=web\npod q a tier=1");
    check(
        &two,
        "",
        all.clone(),
        expect!["a lonely!, b lonely!, c lonely!, d lonely!"],
    );
    let one = on("pod p a app=web tier=1");
    check(
        &one,
        "",
        all,
        expect!["a fits, b fits, c lonely!, d lonely!"],
    );
}

#[test]
fn the_first_of_those_that_want_each_other_goes_anywhere_with_the_keys() {
    let own = || near("app In web by zone; app In web by region");
    check(
        NODES,
        "app=web",
        own(),
        expect!["a fits, b fits, c fits, d lonely!"],
    );
    let nobody = expect!["a lonely!, b lonely!, c lonely!, d lonely!"];
    check(NODES, "app=db", own(), nobody);
    let there = on("pod p c app=web");
    check(
        &there,
        "app=web",
        own(),
        expect!["a lonely!, b lonely!, c fits, d lonely!"],
    );
}

#[test]
fn a_pod_keeps_away_from_those_it_does_not_like() {
    let there = on("pod p a app=web\npod q d app=web");
    let away = far("app In web by zone");
    check(
        &there,
        "app=web",
        away,
        expect!["a disliked, b disliked, c fits, d fits"],
    );
    let either = far("app In none by zone; app In web by region");
    check(
        &there,
        "",
        either,
        expect!["a disliked, b disliked, c disliked, d fits"],
    );
    let with_and_without = both(near("app In web by region"), &far("app In web by zone"));
    check(
        &there,
        "",
        with_and_without,
        expect!["a disliked, b disliked, c fits, d lonely!"],
    );
}

#[test]
fn pods_there_keep_others_away() {
    let shy = far("app In web by zone");
    let there = on(&format!("pod p a app=db {shy}"));
    check(
        &there,
        "app=web",
        json!({}),
        expect!["a refused, b refused, c fits, d fits"],
    );
    check(&there, "app=db", json!({}), expect!["skipped"]);
    check(&there, "app=web ns=other", json!({}), expect!["skipped"]);
    let shy = far("app In none by region; app Exists by zone");
    let there = on(&format!("pod p a app=db {shy}"));
    check(
        &there,
        "app=web",
        json!({}),
        expect!["a refused, b refused, c fits, d fits"],
    );
}

/// Terms over other namespaces.
fn over(mut spec: Value, kind: &str, names: &[&str], selector: Value) -> Value {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms = spec["affinity"][kind][required].as_array_mut().unwrap();
    for term in terms {
        term["namespaces"] = json!(names);
        term["namespaceSelector"] = selector.clone();
    }
    spec
}

#[test]
fn terms_reach_the_namespaces_that_they_name_or_select() {
    let there = on("pod p a app=web ns=one\npod q c app=web ns=three");
    let want =
        |names: &[&str], selector| over(near("app In web by zone"), "podAffinity", names, selector);
    let red = || json!({"matchLabels": {"team": "red"}});
    let first = "a fits, b fits, c lonely!, d lonely!";
    let said = |spec| short(&filter(&plugin(), &pod("", spec), &world(&there)));
    assert_eq!(said(want(&["one"], Value::Null)), first);
    assert_eq!(said(want(&[], red())), first);
    assert_eq!(
        said(want(&["three"], red())),
        "a fits, b fits, c fits, d lonely!"
    );
    assert_eq!(
        said(want(&[], json!({}))),
        "a fits, b fits, c fits, d lonely!"
    );
    assert_eq!(
        said(want(&[], Value::Null)),
        "a lonely!, b lonely!, c lonely!, d lonely!"
    );
}

#[test]
fn pods_there_select_namespaces_too() {
    let red = json!({"matchLabels": {"team": "red"}});
    let shy = over(far("app In web by zone"), "podAntiAffinity", &[], red);
    let there = on(&format!("pod p a app=db ns=three {shy}"));
    check(
        &there,
        "app=web ns=two",
        json!({}),
        expect!["a refused, b refused, c fits, d fits"],
    );
    check(&there, "app=web ns=three", json!({}), expect!["skipped"]);
    check(&there, "app=web ns=unknown", json!({}), expect!["skipped"]);
}

#[test]
fn pods_that_go_change_what_is_said() {
    let shy = far("app In web by zone");
    let text = on(&format!(
        "pod p a app=db {shy}\npod q c app=db\npod r c app=web"
    ));
    let world = world(&text);
    let said = |spec: Value, gone: &[&str]| {
        short(&filter_without(
            &plugin(),
            &pod("app=web", spec),
            &world,
            gone,
        ))
    };
    assert_eq!(said(json!({}), &["p"]), "a fits, b fits, c fits, d fits");
    let away = far("app In db by zone");
    assert_eq!(
        said(away.clone(), &[]),
        "a disliked, b disliked, c disliked, d fits"
    );
    assert_eq!(
        said(away.clone(), &["q"]),
        "a disliked, b disliked, c fits, d fits"
    );
    assert_eq!(said(away, &["p"]), "a fits, b fits, c disliked, d fits");
    let with = near("app In web by zone");
    assert_eq!(
        said(with.clone(), &[]),
        "a lonely!, b lonely!, c fits, d lonely!"
    );
    assert_eq!(said(with, &["p", "r"]), "a fits, b fits, c fits, d lonely!");
}

fn scored(text: &str, labels: &str, spec: Value) -> String {
    score(&plugin(), &pod(labels, spec), &world(text), &[])
}

#[test]
fn weights_of_the_pods_own_terms_draw_it() {
    assert_eq!(scored(&on("pod p a s=1"), "s=1", json!({})), "skipped");
    let nodes = "node a region=China\nnode b region=India\nnode c az=1\n";
    let there = format!("{nodes}pod p a s=1\npod q b s=2\npod r c s=1");
    let first = preferred("5 s In 1 by region");
    assert_eq!(scored(&there, "s=1", first), "a=100 b=0 c=0");
    let mixed = preferred("8 s In 2 by region; 2 s Exists by region");
    assert_eq!(scored(&there, "s=1", mixed), "a=20 b=100 c=0");
    let away = preferred("-5 s In 1 by region");
    assert_eq!(scored(&there, "s=1", away), "a=0 b=100 c=100");
}

#[test]
fn pods_there_draw_those_that_meet_their_terms() {
    let nodes = "node a region=China\nnode b region=India\nnode c az=1\n";
    let draws = |weight: i64| preferred(&format!("{weight} s In 2 by region"));
    let there = format!("{nodes}pod p a s=1 {}\npod q b s=2 {}", draws(5), draws(-5));
    assert_eq!(scored(&there, "s=2", json!({})), "a=100 b=0 c=50");
    assert_eq!(scored(&there, "s=1", json!({})), "skipped");
    let hard = near("s In 1 by region");
    let there = format!("{nodes}pod p a s=1 {hard}\npod q b s=2 {hard}\npod r b s=1 {hard}");
    assert_eq!(scored(&there, "s=1", json!({})), "a=50 b=100 c=0");
    let none = Args {
        hard_pod_affinity_weight: 0,
        ..Args::default()
    };
    let plugin = InterPodAffinity::new(namespaces(), none);
    assert_eq!(
        score(&plugin, &pod("s=1", json!({})), &world(&there), &[]),
        "skipped"
    );
}

#[test]
fn preferred_terms_of_pods_there_may_be_left_aside() {
    let args = Args {
        ignore_preferred_terms_of_existing_pods: true,
        ..Args::default()
    };
    let plugin = InterPodAffinity::new(namespaces(), args);
    let draws = preferred("5 s In 2 by zone");
    let world = world(&on(&format!("pod p a s=1 {draws}")));
    assert_eq!(
        score(&plugin, &pod("s=2", json!({})), &world, &[]),
        "skipped"
    );
    let own = preferred("1 s In 1 by region");
    let said = score(&plugin, &pod("s=2", own), &world, &[]);
    assert_eq!(said, "a=100 b=100 c=16 d=0");
}

fn helps(new: &PodInfo, change: WorldChange) -> bool {
    plugin().can_help(&change, new)
}

fn placed(labels: &str, spec: Value) -> std::sync::Arc<PodInfo> {
    std::sync::Arc::new(pod(labels, spec))
}

#[test]
fn pods_wake_those_that_wait_for_them() {
    use WorldChange::{PodGone, PodPlaced, PodUpdated};
    let wants = pod("app=db", near("app In web by zone"));
    let shuns = pod("app=db", far("app In web by zone"));
    let plain = |labels: &str| placed(labels, json!({}));
    assert!(helps(&wants, PodPlaced(plain("app=web"))));
    assert!(!helps(&wants, PodPlaced(plain("app=db"))));
    assert!(!helps(&wants, PodPlaced(plain("app=web ns=far"))));
    assert!(helps(&shuns, PodGone(plain("app=web"))) && !helps(&shuns, PodGone(plain("app=db"))));
    assert!(helps(
        &shuns,
        PodGone(placed("app=x", far("app In db by zone")))
    ));
    let update = |old: &str, new: &str| PodUpdated {
        old: plain(old),
        new: plain(new),
    };
    assert!(helps(&wants, update("app=db", "app=web")));
    assert!(!helps(&wants, update("app=web", "app=db")));
    assert!(helps(&shuns, update("app=web", "app=db")));
}

/// Whose terms keep it away, and by which key, is not the pod's to know.
#[test]
fn a_pod_that_others_keep_away_wakes_with_new_nodes_and_labels() {
    use WorldChange::{NodeAdded, NodeUpdated};
    let node = |line: &str| world(line).nodes[0].facts.clone();
    let text = format!("node a zone=1\npod p a {}", far("app In db by zone"));
    let new = pod("app=db", json!({}));
    let said = filter(&plugin(), &new, &world(&text));
    assert_eq!(said, format!("a {REASON_EXISTING}"));
    assert!(helps(&new, NodeAdded(node("node b zone=2"))));
    let (old, new_zone) = (node("node a zone=1"), node("node a zone=2"));
    assert!(helps(&new, NodeUpdated { old, new: new_zone }));
}

#[test]
fn one_of_several_terms_is_enough_to_wait_for() {
    use WorldChange::{PodGone, PodUpdated};
    let shuns = pod("app=db", far("app In web by zone; app In api by zone"));
    let plain = |labels: &str| placed(labels, json!({}));
    assert!(helps(&shuns, PodGone(plain("app=api"))));
    let (old, new) = (plain("app=api"), plain("app=x"));
    assert!(helps(&shuns, PodUpdated { old, new }));
    let theirs = placed("app=x", far("app In web by zone; app In db by zone"));
    assert!(helps(&shuns, PodGone(theirs)));
}

#[test]
fn who_may_be_the_first_wakes_when_the_last_is_gone() {
    use WorldChange::PodGone;
    let gone = || PodGone(placed("app=web", json!({})));
    assert!(helps(&pod("app=web", near("app In web by zone")), gone()));
    assert!(!helps(&pod("app=db", near("app In web by zone")), gone()));
}

#[test]
fn nodes_wake_by_their_keys() {
    use WorldChange::{NodeAdded, NodeRemoved, NodeUpdated};
    let wants = pod("", near("app In web by zone"));
    let shuns = pod("", far("app In web by zone"));
    let node = |line: &str| world(line).nodes[0].facts.clone();
    assert!(helps(&wants, NodeAdded(node("node a zone=1"))));
    assert!(!helps(&wants, NodeAdded(node("node a"))));
    assert!(helps(&shuns, NodeAdded(node("node a"))));
    let update = |old, new| NodeUpdated {
        old: node(old),
        new: node(new),
    };
    assert!(helps(&wants, update("node a", "node a zone=1")));
    assert!(helps(&shuns, update("node a zone=1", "node a")));
    assert!(helps(&shuns, update("node a zone=1", "node a zone=2")));
    assert!(!helps(
        &shuns,
        update("node a zone=1", "node a zone=1 taint=k")
    ));
    assert!(!helps(&wants, NodeRemoved(node("node a zone=1"))));
}
