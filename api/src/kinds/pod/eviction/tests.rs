//! Who may go: pods that no budget counts, and what a budget says to the others.

use super::*;
use crate::kinds::testing::object;

fn pod(phase: &str, ready: &str) -> Object {
    object(json!({
        "metadata": { "name": "web-0", "namespace": "shop", "labels": { "app": "web" } },
        "status": { "phase": phase, "conditions": [{ "type": "Ready", "status": ready }] },
    }))
}

fn budget(status: Value) -> Object {
    object(json!({
        "metadata": { "name": "web", "namespace": "shop", "generation": 1 },
        "spec": { "minAvailable": 2, "selector": { "matchLabels": { "app": "web" } } },
        "status": status,
    }))
}

const NOW: &str = "2026-01-01T00:00:00Z";

#[test]
fn pods_that_do_not_run_need_no_budget() {
    for phase in ["Pending", "Succeeded", "Failed"] {
        assert!(ignores_budgets(&pod(phase, "False")), "{phase}");
    }
    assert!(!ignores_budgets(&pod("Running", "False")));
    let mut ending = pod("Running", "True");
    ending.set(&["metadata", "deletionTimestamp"], NOW.into());
    assert!(ignores_budgets(&ending) && has_ended(&ending));
}

#[test]
fn an_unready_pod_goes_for_nothing_where_the_budget_is_whole() {
    let whole = budget(json!({ "currentHealthy": 2, "desiredHealthy": 2 }));
    let broken = budget(json!({ "currentHealthy": 1, "desiredHealthy": 2 }));
    let (ready, unready) = (pod("Running", "True"), pod("Running", "False"));
    assert!(is_spared(&unready, &whole) && !is_spared(&unready, &broken));
    assert!(!is_spared(&ready, &whole));
    let mut lenient = broken;
    lenient.set(
        &["spec", "unhealthyPodEvictionPolicy"],
        "AlwaysAllow".into(),
    );
    assert!(is_spared(&unready, &lenient));
}

#[test]
fn a_budget_without_selector_selects_nothing_and_an_empty_one_all() {
    let mut budget = budget(json!({}));
    assert!(selects(&budget, &pod("Running", "True")));
    budget.set(&["spec", "selector"], json!({}));
    assert!(selects(&budget, &pod("Running", "True")));
    budget.set(&["spec", "selector"], Value::Null);
    assert!(!selects(&budget, &pod("Running", "True")));
}

#[test]
fn each_eviction_takes_one_disruption() {
    let mut two = budget(json!({ "observedGeneration": 1, "disruptionsAllowed": 2 }));
    assert_eq!(charge(&mut two, "web-0", NOW), Charge::Taken);
    assert_eq!(count(&two, "disruptionsAllowed"), 1);
    assert_eq!(two.str(&["status", "disruptedPods", "web-0"]), NOW);
    assert!(two.list(&["status", "conditions"]).is_empty());
    assert_eq!(charge(&mut two, "web-1", NOW), Charge::Taken);
    let condition = &two.list(&["status", "conditions"])[0];
    assert_eq!(condition["reason"], "InsufficientPods");
    assert!(matches!(charge(&mut two, "web-2", NOW), Charge::Empty(_)));
}

#[test]
fn a_budget_says_why_it_refuses() {
    let refused = |status: Value| charge(&mut budget(status), "web-0", NOW);
    assert_eq!(refused(json!({})), Charge::Behind);
    assert_eq!(
        refused(json!({ "observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 2 })),
        Charge::Empty(
            "The disruption budget web needs 2 healthy pods and has 1 currently".to_owned()
        )
    );
    let failed = json!([{
        "type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "no pods",
    }]);
    assert_eq!(
        refused(json!({ "observedGeneration": 1, "conditions": failed })),
        Charge::Empty(
            "The disruption budget web does not allow evicting pods currently because it failed \
             sync: no pods"
                .to_owned()
        )
    );
    let negative = json!({ "observedGeneration": 1, "disruptionsAllowed": -1 });
    assert!(matches!(refused(negative), Charge::Broken(_)));
}

#[test]
fn who_was_to_go_already_has_been_so_since() {
    let earlier = "2025-12-31T23:59:00Z";
    for (status, since) in [("True", earlier), ("False", NOW)] {
        let mut marked = pod("Running", "True");
        let mut conditions = marked.list(&["status", "conditions"]).to_vec();
        let before = json!({
            "type": "DisruptionTarget", "status": status, "lastTransitionTime": earlier,
        });
        conditions.insert(0, before);
        marked.set(&["status", "conditions"], conditions.into());
        mark(&mut marked, NOW);
        let conditions = marked.list(&["status", "conditions"]);
        assert_eq!(conditions.len(), 2);
        assert_eq!(conditions[0]["status"], "True");
        assert_eq!(conditions[0]["reason"], "EvictionByEvictionAPI");
        assert_eq!(conditions[0]["lastTransitionTime"], since);
    }
}
