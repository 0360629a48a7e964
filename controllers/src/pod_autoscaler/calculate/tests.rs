//! Pods and what they use in, how many there should be out, as text. The cases are upstream's.
//!
//! `want TARGET replicas=N [up=T] [down=T] [container]`, then `pod NAME [use=MILLI] [asks=MILLI]
//! [unready] [pending] [failed] [deleting] [age=S] [changed=S] [sample=S]`: ages are in seconds;
//! a pod without `use` tells nothing.

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::fixture_text::*;

fn pod(name: &str, words: &[&str]) -> Arc<Pod> {
    let phase = match (words.contains(&"pending"), words.contains(&"failed")) {
        (true, _) => "Pending",
        (_, true) => "Failed",
        _ => "Running",
    };
    let ready = if words.contains(&"unready") {
        "False"
    } else {
        "True"
    };
    let age = number(words, "age").unwrap_or(3600);
    let changed = number(words, "changed").unwrap_or(age);
    let asks = number(words, "asks").map(|milli| format!("{milli}m"));
    let mut requests = json!({});
    if let Some(asks) = asks.or((option(words, "asks") != Some("none")).then(|| "1".to_owned())) {
        requests = json!({"cpu": asks, "memory": "1Ki"});
    }
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]},
        "status": {"phase": phase, "startTime": at(age), "conditions": [
            {"type": "Ready", "status": ready, "lastTransitionTime": at(changed)},
        ]},
    });
    if words.contains(&"deleting") {
        pod["metadata"]["deletionTimestamp"] = json!(at(0));
    }
    if words.contains(&"starting") {
        pod["status"].as_object_mut().unwrap().remove("startTime");
    }
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn metric(words: &[&str]) -> Option<PodMetric> {
    let sampled: Timestamp = at(number(words, "sample").unwrap_or(0)).parse().unwrap();
    Some(PodMetric {
        at: sampled,
        window: Duration::from_secs(60),
        milli: number(words, "use")?,
    })
}

struct Case {
    pods: Vec<Arc<Pod>>,
    metrics: PodMetrics,
    target: i64,
    replicas: i32,
    tolerances: Tolerances,
}

impl Case {
    fn read(text: &str) -> Self {
        let mut case = Self {
            pods: Vec::new(),
            metrics: PodMetrics::new(),
            target: 0,
            replicas: 0,
            tolerances: Tolerances::default(),
        };
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["want", target, options @ ..] => {
                    case.target = target.parse().unwrap();
                    case.replicas = i32::try_from(number(options, "replicas").unwrap()).unwrap();
                    let tolerance = |name| option(options, name).map(|one| one.parse().unwrap());
                    case.tolerances.up = tolerance("up").unwrap_or(TOLERANCE);
                    case.tolerances.down = tolerance("down").unwrap_or(TOLERANCE);
                }
                ["pod", name, options @ ..] => {
                    let metric = metric(options);
                    case.metrics
                        .extend(metric.map(|metric| ((*name).to_owned(), metric)));
                    if !options.contains(&"gone") {
                        case.pods.push(pod(name, options));
                    }
                }
                other => panic!("cannot read {other:?}"),
            }
        }
        case
    }

    fn situation(&self) -> Situation<'_> {
        Situation {
            pods: &self.pods,
            spec_replicas: self.replicas,
            status_replicas: self.replicas,
            tolerances: self.tolerances,
            now: now(),
        }
    }
}

fn told(answer: Result<Answer, String>) -> String {
    match answer {
        Ok(answer) => format!(
            "{} at {}% {}m",
            answer.replicas, answer.percent, answer.milli
        ),
        Err(why) => why,
    }
}

/// By the share of what is asked for.
fn shares(text: &str, expected: Expect) {
    let case = Case::read(text);
    let target = i32::try_from(case.target).unwrap();
    let answer = utilization(case.situation(), case.metrics.clone(), target, "cpu", None);
    expected.assert_eq(&told(answer));
}

/// By an average of a metric, which is not of CPU.
fn averages(text: &str, expected: Expect) {
    let case = Case::read(text);
    let answer = average(case.situation(), case.metrics.clone(), case.target, "");
    expected.assert_eq(&told(answer));
}

#[test]
fn busy_pods_get_company() {
    shares(
        "want 30 replicas=3
         pod a use=300
         pod b use=500
         pod c use=700",
        expect!["5 at 50% 500m"],
    );
    averages(
        "want 15000 replicas=3
         pod a use=20000
         pod b use=10000
         pod c use=30000",
        expect!["4 at 0% 20000m"],
    );
}

#[test]
fn idle_pods_lose_it() {
    shares(
        "want 50 replicas=5
         pod a use=100
         pod b use=300
         pod c use=500
         pod d use=250
         pod e use=250",
        expect!["3 at 28% 280m"],
    );
    averages(
        "want 20000 replicas=5
         pod a use=12000
         pod b use=12000
         pod c use=12000
         pod d use=12000
         pod e use=12000",
        expect!["3 at 0% 12000m"],
    );
}

#[test]
fn unready_pods_count_as_idle_when_more_are_wanted() {
    shares(
        "want 30 replicas=3
         pod a use=300 unready
         pod b use=500
         pod c use=700",
        expect!["4 at 60% 600m"],
    );
    shares(
        "want 30 replicas=3
         pod a use=400
         pod b use=500 unready
         pod c use=700 unready",
        expect!["3 at 40% 400m"],
    );
    // Readiness says something of CPU alone.
    averages(
        "want 15000 replicas=3
         pod a use=50000
         pod b use=10000
         pod c use=30000 unready age=10",
        expect!["6 at 0% 30000m"],
    );
}

#[test]
fn unready_pods_are_left_out_when_fewer_are_wanted() {
    shares(
        "want 50 replicas=5
         pod a use=100
         pod b use=300
         pod c use=500
         pod d use=250 unready
         pod e use=250 unready",
        expect!["2 at 30% 300m"],
    );
    shares(
        "want 50 replicas=5
         pod a use=100
         pod b pending
         pod c pending
         pod d pending
         pod e pending",
        expect!["1 at 10% 100m"],
    );
}

#[test]
fn pods_that_have_just_started_say_nothing_yet() {
    let hot = |word: &str| {
        format!(
            "want 30 replicas=3
             pod a use=300 {word}
             pod b use=500
             pod c use=700"
        )
    };
    // No whole window of the metric lies after it became ready.
    shares(&hot("age=30"), expect!["4 at 60% 600m"]);
    shares(&hot("age=200 changed=30"), expect!["4 at 60% 600m"]);
    shares(
        &hot("age=200 changed=90 sample=40"),
        expect!["4 at 60% 600m"],
    );
    shares(&hot("age=200 changed=60"), expect!["5 at 50% 500m"]);
    // Its five minutes are over.
    shares(&hot("age=301 changed=30"), expect!["5 at 50% 500m"]);
    shares(
        &hot("age=200 unready changed=100"),
        expect!["4 at 60% 600m"],
    );
    // It was ready once, and is unready now for its load.
    shares(
        &hot("age=301 unready changed=100"),
        expect!["5 at 50% 500m"],
    );
    shares(
        &hot("age=301 unready changed=280"),
        expect!["4 at 60% 600m"],
    );
    shares(&hot("starting"), expect!["4 at 60% 600m"]);
}

#[test]
fn failed_and_leaving_pods_are_none() {
    for word in ["failed", "deleting"] {
        shares(
            &format!(
                "want 30 replicas=2
                 pod a use=500
                 pod b use=700
                 pod c use=100 unready {word}
                 pod d {word}"
            ),
            expect!["4 at 60% 600m"],
        );
    }
}

#[test]
fn near_the_target_nothing_changes() {
    shares(
        "want 100 replicas=3
         pod a use=1010 asks=900
         pod b use=1030
         pod c use=1020 asks=1100",
        expect!["3 at 102% 1020m"],
    );
    averages(
        "want 20000 replicas=3
         pod a use=20000
         pod b use=21000
         pod c use=21000",
        expect!["3 at 0% 20666m"],
    );
    averages(
        "want 20000 replicas=3 up=0.01
         pod a use=20000
         pod b use=21000
         pod c use=21000",
        expect!["4 at 0% 20666m"],
    );
    shares(
        "want 100 replicas=3 up=2 down=0.1
         pod a use=2000
         pod b use=2000
         pod c use=2000",
        expect!["3 at 200% 2000m"],
    );
    shares(
        "want 100 replicas=3 up=2 down=0.5
         pod a use=500
         pod b use=500
         pod c use=500",
        expect!["3 at 50% 500m"],
    );
}

#[test]
fn pods_without_metrics_hold_back() {
    // All of what they ask for, when fewer are wanted.
    shares(
        "want 100 replicas=4
         pod a use=800
         pod b use=190
         pod c
         pod d",
        expect!["3 at 49% 495m"],
    );
    shares(
        "want 300 replicas=4
         pod a use=400
         pod b use=200
         pod c use=200 asks=2000
         pod d asks=2000",
        expect!["2 at 20% 266m"],
    );
    // Nothing, when more are.
    shares(
        "want 100 replicas=2
         pod a use=1900
         pod b",
        expect!["2 at 190% 1900m"],
    );
    for (used, expected) in [
        (1000, expect!["2 at 100% 1000m"]),
        (600, expect!["2 at 60% 600m"]),
    ] {
        shares(
            &format!(
                "want 100 replicas=2
                 pod a use={used}
                 pod b"
            ),
            expected,
        );
    }
    shares(
        "want 50 replicas=3
         pod a use=100 unready
         pod b use=2000
         pod c",
        expect!["4 at 200% 2000m"],
    );
    averages(
        "want 20000 replicas=5
         pod a use=20000
         pod b use=19000
         pod c use=21000
         pod d
         pod e",
        expect!["5 at 0% 20000m"],
    );
}

#[test]
fn a_rollout_with_more_pods_than_asked_for_does_not_grow_when_idle() {
    shares(
        "want 50 replicas=2
         pod a use=100
         pod b use=100
         pod c",
        expect!["2 at 10% 100m"],
    );
    averages(
        "want 17000 replicas=2
         pod a use=10000
         pod b use=10000
         pod c",
        expect!["2 at 0% 10000m"],
    );
}

#[test]
fn metrics_of_others_are_not_shared_out() {
    shares(
        "want 100 replicas=4
         pod a use=4000
         pod b use=9500
         pod c use=3000
         pod d use=7000
         pod e use=3200 gone
         pod f use=2000 gone",
        expect!["24 at 587% 5875m"],
    );
}

#[test]
fn what_cannot_be_said_says_why() {
    shares(
        "want 100 replicas=1",
        expect!["no pods returned by selector while calculating replica count"],
    );
    shares(
        "want 100 replicas=1
         pod a use=100 unready",
        expect!["did not receive metrics for targeted pods (pods might be unready)"],
    );
    shares(
        "want 100 replicas=1
         pod a use=100 asks=none",
        expect!["missing request for cpu in container main of Pod a"],
    );
    shares(
        "want 100 replicas=1
         pod a
         pod b use=100 gone",
        expect!["no metrics returned matched known pods"],
    );
}

fn one_value(replicas: i32, pods: &str, milli: i64, target: i64) -> String {
    let case = Case::read(&format!("want 0 replicas={replicas}\n{pods}"));
    told(value(case.situation(), milli, target))
}

#[test]
fn one_value_is_shared_by_the_pods_that_are_ready() {
    let three = "pod a\npod b\npod c";
    assert_eq!(one_value(3, three, 20_000, 15_000), "4 at 0% 20000m");
    assert_eq!(one_value(3, three, 20_666, 20_000), "3 at 0% 20666m");
    let one = "pod a unready\npod b\npod c unready";
    assert_eq!(one_value(3, one, 50_000, 10_000), "5 at 0% 50000m");
    assert_eq!(one_value(3, one, 8600, 4400), "2 at 0% 8600m");
    assert_eq!(one_value(0, "", 20_000, 15_000), "2 at 0% 20000m");
    let most = format!("{} at 0% {}m", i32::MAX, i64::MAX);
    assert_eq!(one_value(3, three, i64::MAX, 1), most);
    let why = format!("unable to calculate ready pods: {NO_PODS}");
    assert_eq!(one_value(3, "", 20_000, 15_000), why);
}

fn divided(replicas: i32, milli: i64, target: i64) -> String {
    let case = Case::read(&format!("want 0 replicas={replicas}"));
    told(Ok(value_per_pod(case.situation(), milli, target)))
}

#[test]
fn one_value_is_divided_among_the_pods_there_are() {
    assert_eq!(divided(3, 20_000, 5000), "4 at 0% 6667m");
    assert_eq!(divided(3, 8600, 2150), "4 at 0% 2867m");
    assert_eq!(divided(5, 6000, 2000), "3 at 0% 1200m");
    assert_eq!(divided(4, 20_166, 5000), "4 at 0% 5042m");
    assert_eq!(divided(3, 8600, 2900), "3 at 0% 2867m");
    let most = format!("{} at 0% {}m", i32::MAX, i64::MAX);
    assert_eq!(divided(1, i64::MAX, 1), most);
    let one = format!("1 at 0% {}m", i64::MAX);
    assert_eq!(divided(1, i64::MAX, i64::MAX), one);
}
