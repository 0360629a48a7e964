//! A budget and its pods in, the counts out, as text.
//!
//! `pdb [min=N|N%] [max=N|N%] [scale=N]`, where `scale` is what the controllers ask for; `gone POD
//! SECONDS` for each pod that was let go so long ago; then `pod NAME [ready] [deleting]`.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;
use crate::fixture_text::*;

mod running;

fn budget(words: &[&str]) -> PodDisruptionBudget {
    let mut spec = json!({"selector": {"matchLabels": {"app": "web"}}});
    for (word, field) in [("min", "minAvailable"), ("max", "maxUnavailable")] {
        if option(words, word).is_some() {
            spec[field] = int_or_percent(words, word, "");
        }
    }
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "default", "generation": 2}, "spec": spec,
    }))
    .unwrap()
}

fn pod(name: &str, words: &[&str]) -> Arc<Pod> {
    let ready = if words.contains(&"ready") {
        "True"
    } else {
        "False"
    };
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
    });
    if words.contains(&"deleting") {
        pod["metadata"]["deletionTimestamp"] = json!(at(0));
    }
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn plan_of(text: &str) -> plan::Plan {
    let (mut budgets, mut pods, mut scale) = (budget(&[]), Vec::new(), 0);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["pdb", options @ ..] => {
                budgets = budget(options);
                scale = number(options, "scale").unwrap_or(0);
            }
            ["gone", name, age] => {
                let status = budgets.status.get_or_insert_default();
                let since = serde_json::from_value(json!(at(age.parse().unwrap()))).unwrap();
                let gone = status.disrupted_pods.get_or_insert_default();
                gone.insert((*name).to_owned(), since);
            }
            ["pod", name, options @ ..] => pods.push(pod(name, options)),
            other => panic!("cannot read {other:?}"),
        }
    }
    plan::plan(&budgets, &pods, i32::try_from(scale).unwrap(), now())
}

fn said(plan: &plan::Plan) -> String {
    let status = &plan.status;
    let mut said = format!(
        "expected {} desired {} healthy {} allowed {}",
        status.expected_pods.unwrap(),
        status.desired_healthy.unwrap(),
        status.current_healthy.unwrap(),
        status.disruptions_allowed.unwrap()
    );
    for name in status.disrupted_pods.iter().flatten().map(|(name, _)| name) {
        said += &format!(", {name} goes");
    }
    for pod in &plan.not_deleted {
        said += &format!(", {} stayed", pod.metadata.name.as_deref().unwrap());
    }
    if let Some(again) = plan.again {
        said += &format!(", again in {} s", again.as_secs());
    }
    said
}

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&said(&plan_of(text)));
}

const THREE: &str = "\npod a ready\npod b ready\npod c";

#[test]
fn a_number_counts_the_pods_that_are_there() {
    check(
        &format!("pdb min=1{THREE}"),
        expect!["expected 3 desired 1 healthy 2 allowed 1"],
    );
    check(
        &format!("pdb min=2{THREE}"),
        expect!["expected 3 desired 2 healthy 2 allowed 0"],
    );
    check(
        &format!("pdb min=5{THREE}"),
        expect!["expected 3 desired 5 healthy 2 allowed 0"],
    );
    check(
        "pdb min=0",
        expect!["expected 0 desired 0 healthy 0 allowed 0"],
    );
    check(
        &format!("pdb{THREE}"),
        expect!["expected 0 desired 0 healthy 2 allowed 0"],
    );
}

#[test]
fn shares_are_of_what_the_controllers_ask_for_and_rounded_up() {
    check(
        &format!("pdb min=50% scale=3{THREE}"),
        expect!["expected 3 desired 2 healthy 2 allowed 0"],
    );
    check(
        &format!("pdb max=34% scale=5{THREE}"),
        expect!["expected 5 desired 3 healthy 2 allowed 0"],
    );
    check(
        &format!("pdb max=1 scale=2{THREE}"),
        expect!["expected 2 desired 1 healthy 2 allowed 1"],
    );
    check(
        &format!("pdb max=9 scale=2{THREE}"),
        expect!["expected 2 desired 0 healthy 2 allowed 2"],
    );
    check(
        "pdb max=1",
        expect!["expected 0 desired 0 healthy 0 allowed 0"],
    );
}

#[test]
fn who_was_let_go_is_not_there_any_more_until_it_is_clear_that_it_stays() {
    check(
        "pdb min=1
         gone a 119
         gone b 30
         gone unknown 5
         pod a ready
         pod b ready
         pod c ready",
        expect!["expected 3 desired 1 healthy 1 allowed 0, a goes, b goes, again in 1 s"],
    );
    check(
        "pdb min=1\ngone a 120\npod a ready\npod b ready",
        expect!["expected 2 desired 1 healthy 2 allowed 1, a stayed"],
    );
    // What ends is neither.
    check(
        "pdb min=1\ngone a 5\npod a ready deleting\npod b ready",
        expect!["expected 2 desired 1 healthy 1 allowed 0"],
    );
}

fn condition(status: &PodDisruptionBudgetStatus) -> String {
    let conditions = status.conditions.iter().flatten();
    let told = conditions.map(|one| {
        let (since, seen) = (one.last_transition_time.0, one.observed_generation);
        let age = now().duration_since(since).as_secs();
        let Condition {
            type_,
            status,
            reason,
            message,
            ..
        } = one;
        format!("{type_}={status} {reason} {message:?} for {age} s, generation {seen:?}")
    });
    told.collect::<Vec<_>>().join("; ")
}

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

#[test]
fn the_condition_says_since_when() {
    let status = plan_of("pdb min=1\npod a ready").status;
    expect![[r#"DisruptionAllowed=False InsufficientPods "" for 0 s, generation Some(2)"#]]
        .assert_eq(&condition(&status));
    let mut known = budget(&["min=0"]);
    known.status = Some(status);
    let since = |budget: &mut PodDisruptionBudget| {
        let status = budget.status.as_mut().unwrap();
        let conditions = status.conditions.as_mut().unwrap();
        conditions[0].last_transition_time = serde_json::from_value(json!(at(60))).unwrap();
    };
    since(&mut known);
    let pods = [pod("a", &["ready"])];
    let allowed = plan::plan(&known, &pods, 0, now()).status;
    expect![[r#"DisruptionAllowed=True SufficientPods "" for 0 s, generation Some(2)"#]]
        .assert_eq(&condition(&allowed));
    assert!(plan::differs(&known, &allowed));
    let still = plan::plan(&known, &[], 0, now()).status;
    expect![[r#"DisruptionAllowed=False InsufficientPods "" for 60 s, generation Some(2)"#]]
        .assert_eq(&condition(&still));
    let failed = plan::failed(
        &known,
        "no idea".to_owned(),
        serde_json::from_value(json!(at(0))).unwrap(),
    );
    expect![[r#"DisruptionAllowed=False SyncFailed "no idea" for 60 s, generation Some(2)"#]]
        .assert_eq(&condition(&failed));
    assert_eq!(failed.disruptions_allowed, Some(0));
}

#[test]
fn nothing_new_is_not_written() {
    let mut known = budget(&["min=1"]);
    let pods = [pod("a", &["ready"])];
    let status = plan::plan(&known, &pods, 0, now()).status;
    assert!(plan::differs(&known, &status));
    known.status = Some(status.clone());
    assert!(!plan::differs(&known, &status));
    // The server may send an empty map.
    known.status.as_mut().unwrap().disrupted_pods = Some(std::collections::BTreeMap::new());
    assert!(!plan::differs(&known, &status));
    known.metadata.generation = Some(3);
    let next = plan::plan(&known, &pods, 0, now()).status;
    assert!(plan::differs(&known, &next));
}

#[test]
fn a_disruption_is_stale_after_two_minutes_unless_the_pod_ends() {
    let stale = |condition: Value, change: &dyn Fn(&mut Value)| {
        let mut pod = json!({"metadata": {"name": "a"},
                             "status": {"phase": "Running", "conditions": [condition]}});
        change(&mut pod);
        let pod: Pod = serde_json::from_value(pod).unwrap();
        stale::stale_in(&pod, now()).map(|left| left.as_secs())
    };
    let said = |status: &str, reason: &str, age: i64| {
        json!({"type": "DisruptionTarget", "status": status, "reason": reason,
               "lastTransitionTime": at(age)})
    };
    let as_is = |_: &mut Value| {};
    let evicted = "EvictionByEvictionAPI";
    assert_eq!(stale(said("True", evicted, 20), &as_is), Some(100));
    assert_eq!(stale(said("True", evicted, 500), &as_is), Some(0));
    assert_eq!(stale(said("False", evicted, 500), &as_is), None);
    assert_eq!(
        stale(said("True", "TerminationByKubelet", 500), &as_is),
        None
    );
    let deleting = |pod: &mut Value| pod["metadata"]["deletionTimestamp"] = json!(at(0));
    assert_eq!(stale(said("True", evicted, 500), &deleting), None);
    let failed = |pod: &mut Value| pod["status"]["phase"] = json!("Failed");
    assert_eq!(stale(said("True", evicted, 500), &failed), None);
}

#[test]
fn selectors_are_told_as_go_prints_them() {
    let mut budget = budget(&["max=1"]);
    budget.spec.as_mut().unwrap().selector = serde_json::from_value(json!({
        "matchLabels": {"app": "web", "tier": "front"},
        "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]},
                             {"key": "old", "operator": "DoesNotExist"}],
    }))
    .unwrap();
    let told = told::unmanaged(&budget);
    let selector = told.split_once("(selector: ").unwrap().1;
    let selector = selector.split_once(") were found").unwrap().0;
    expect!["&LabelSelector{MatchLabels:map[string]string{app: web,tier: front,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:zone,Operator:In,Values:[a b],},LabelSelectorRequirement{Key:old,Operator:DoesNotExist,Values:[],},},}"]
    .assert_eq(selector);
}
