//! What metrics ask for over time in, the steps out, as text. Each step that is taken is noted.
//!
//! `bounds MIN MAX`, then for rules of either direction `up` or `down` with `window=S`, `select=S`
//! and any of `pods=N/S` and `percent=N/S`; then `at S has N wants N`.

use expect_test::{Expect, expect};
use k8s_openapi::api::autoscaling::v2::HPAScalingPolicy;

use super::*;
use crate::fixture_text::*;

fn policies(words: &[&str]) -> Vec<HPAScalingPolicy> {
    let policy = |word: &&str| {
        let (kind, rest) = word.split_once('=')?;
        let type_ = match kind {
            "pods" => "Pods",
            "percent" => "Percent",
            _ => return None,
        };
        let (value, period) = rest.split_once('/')?;
        Some(HPAScalingPolicy {
            type_: type_.to_owned(),
            value: value.parse().unwrap(),
            period_seconds: period.parse().unwrap(),
        })
    };
    words.iter().filter_map(policy).collect()
}

/// As the server fills them in.
fn rules(words: &[&str], defaults: &[&str]) -> HPAScalingRules {
    let mut given = policies(words);
    if given.is_empty() {
        given = policies(defaults);
    }
    let window = number(words, "window").map(|window| i32::try_from(window).unwrap());
    HPAScalingRules {
        policies: Some(given),
        select_policy: Some(option(words, "select").unwrap_or("Max").to_owned()),
        stabilization_window_seconds: window,
        tolerance: None,
    }
}

fn check(script: &str, expected: Expect) {
    let mut bounds = Bounds { min: 1, max: 1000 };
    let (mut behavior, mut memory) = (None::<Behavior>, Memory::default());
    let mut told = String::new();
    let defaults = || Behavior {
        scale_up: Some(rules(&["window=0"], &["pods=4/15", "percent=100/15"])),
        scale_down: Some(rules(&[], &["percent=100/15"])),
    };
    for line in script.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["bounds", min, max] => {
                bounds.min = min.parse().unwrap();
                bounds.max = max.parse().unwrap();
            }
            ["up", options @ ..] => {
                let behavior = behavior.get_or_insert_with(defaults);
                behavior.scale_up = Some(rules(options, &["pods=4/15", "percent=100/15"]));
            }
            ["down", options @ ..] => {
                let behavior = behavior.get_or_insert_with(defaults);
                behavior.scale_down = Some(rules(options, &["percent=100/15"]));
            }
            ["at", at, "has", has, "wants", wants] => {
                let now = Duration::from_secs(at.parse().unwrap());
                let (has, wants) = (has.parse().unwrap(), wants.parse().unwrap());
                memory.begin(has, now);
                let step = memory.step(behavior.as_ref(), bounds, has, wants, now);
                if step.replicas != has {
                    memory.scaled(behavior.as_ref(), has, step.replicas, now);
                }
                let limited = if step.is_limited { "limited" } else { "free" };
                let (replicas, able, why) = (step.replicas, step.able.0, step.limited.0);
                told.push_str(&format!("{replicas} {able}, {limited} {why}\n"));
            }
            other => panic!("cannot read {other:?}"),
        }
    }
    expected.assert_eq(&told);
}

#[test]
fn without_rules_it_doubles_at_most_and_waits_five_minutes_before_it_shrinks() {
    check(
        "bounds 2 10
         at 0 has 3 wants 5
         at 15 has 5 wants 12
         at 30 has 10 wants 1
         at 315 has 10 wants 1
         at 316 has 10 wants 1",
        expect![[r#"
            5 ReadyForNewScale, free DesiredWithinRange
            10 ReadyForNewScale, limited TooManyReplicas
            10 ScaleDownStabilized, limited TooManyReplicas
            10 ScaleDownStabilized, limited TooManyReplicas
            2 ReadyForNewScale, limited TooFewReplicas
        "#]],
    );
    check(
        "at 0 has 1 wants 20
         at 15 has 4 wants 20
         at 30 has 8 wants 20",
        expect![[r#"
            4 ReadyForNewScale, limited ScaleUpLimit
            8 ReadyForNewScale, limited ScaleUpLimit
            16 ReadyForNewScale, limited ScaleUpLimit
        "#]],
    );
}

#[test]
fn growth_is_by_the_policy_that_lets_through_most() {
    check(
        "up window=0
         at 0 has 1 wants 100
         at 15 has 5 wants 100
         at 30 has 10 wants 100",
        expect![[r#"
            5 ReadyForNewScale, limited ScaleUpLimit
            10 ReadyForNewScale, limited ScaleUpLimit
            20 ReadyForNewScale, limited ScaleUpLimit
        "#]],
    );
    check(
        "up window=0 select=Min pods=4/60 percent=50/60
         at 0 has 10 wants 100
         at 15 has 14 wants 100
         at 60 has 14 wants 100",
        expect![[r#"
            14 ReadyForNewScale, limited ScaleUpLimit
            14 ReadyForNewScale, limited ScaleUpLimit
            18 ReadyForNewScale, limited ScaleUpLimit
        "#]],
    );
    check(
        "up window=0 percent=10/60
         at 0 has 1 wants 5",
        expect![[r#"
            2 ReadyForNewScale, limited ScaleUpLimit
        "#]],
    );
    check(
        "up window=0 select=Disabled
         at 0 has 3 wants 5",
        expect![[r#"
            3 ReadyForNewScale, limited ScaleUpLimit
        "#]],
    );
}

#[test]
fn a_period_counts_what_was_done_in_it() {
    check(
        "up window=0 pods=4/60
         down window=0 pods=2/60
         at 0 has 10 wants 12
         at 15 has 12 wants 20
         at 30 has 14 wants 5
         at 45 has 8 wants 5
         at 75 has 8 wants 5
         at 90 has 8 wants 5",
        expect![[r#"
            12 ReadyForNewScale, free DesiredWithinRange
            14 ReadyForNewScale, limited ScaleUpLimit
            8 ReadyForNewScale, limited ScaleDownLimit
            8 ReadyForNewScale, limited ScaleDownLimit
            8 ReadyForNewScale, limited ScaleDownLimit
            6 ReadyForNewScale, limited ScaleDownLimit
        "#]],
    );
}

#[test]
fn shrinking_waits_for_its_window_and_goes_at_its_rate() {
    check(
        "bounds 1 100
         down window=60 percent=10/60
         at 0 has 100 wants 10
         at 15 has 100 wants 10
         at 60 has 100 wants 10
         at 75 has 90 wants 10
         at 120 has 90 wants 10",
        expect![[r#"
            100 ScaleDownStabilized, free DesiredWithinRange
            100 ScaleDownStabilized, free DesiredWithinRange
            90 ReadyForNewScale, limited ScaleDownLimit
            90 ReadyForNewScale, limited ScaleDownLimit
            81 ReadyForNewScale, limited ScaleDownLimit
        "#]],
    );
    // Without a window of its own it is upstream's five minutes.
    check(
        "down pods=1/60
         at 0 has 5 wants 1
         at 299 has 5 wants 1
         at 300 has 5 wants 1",
        expect![[r#"
            5 ScaleDownStabilized, free DesiredWithinRange
            5 ScaleDownStabilized, free DesiredWithinRange
            4 ReadyForNewScale, limited ScaleDownLimit
        "#]],
    );
    check(
        "down window=0 select=Disabled
         at 0 has 5 wants 1",
        expect![[r#"
            5 ReadyForNewScale, limited ScaleDownLimit
        "#]],
    );
    check(
        "bounds 4 10
         down window=0 select=Min pods=5/60 percent=50/60
         at 0 has 8 wants 1",
        expect![[r#"
            4 ReadyForNewScale, limited TooFewReplicas
        "#]],
    );
}

#[test]
fn growth_can_be_made_to_wait() {
    check(
        "up window=60
         at 0 has 3 wants 5
         at 15 has 3 wants 6
         at 60 has 3 wants 7
         at 75 has 6 wants 4",
        expect![[r#"
            3 ScaleUpStabilized, free DesiredWithinRange
            3 ScaleUpStabilized, free DesiredWithinRange
            6 ScaleUpStabilized, free DesiredWithinRange
            6 ScaleDownStabilized, free DesiredWithinRange
        "#]],
    );
}

#[test]
fn what_is_remembered_does_not_grow() {
    let mut memory = Memory::default();
    let behavior = Behavior {
        scale_up: Some(rules(&["window=0", "pods=9/60"], &[])),
        scale_down: Some(rules(&["window=30", "pods=9/60"], &[])),
    };
    let bounds = Bounds { min: 1, max: 100 };
    for pass in 0..1000_u64 {
        let now = Duration::from_secs(pass * 15);
        let (has, wants) = if pass % 2 == 0 { (3, 5) } else { (5, 3) };
        memory.step(Some(&behavior), bounds, has, wants, now);
        memory.scaled(Some(&behavior), has, wants, now);
    }
    assert!(memory.recommendations.len() <= 4, "{memory:?}");
    assert!(
        memory.ups.len() <= 3 && memory.downs.len() <= 3,
        "{memory:?}"
    );
}
