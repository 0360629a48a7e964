//! Taints, tolerations and the time that runs in, the decision out:
//! `taint=KEY[:VALUE]`, `bears=KEY|*[:VALUE|:*][@SECONDS]`, `due=SECONDS`, `done`, `nodeless`, `deleting`.

use std::time::Duration;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;

fn toleration(text: &str) -> Value {
    let (what, seconds) = match text.split_once('@') {
        None => (text, None),
        Some((what, seconds)) => (what, Some(seconds.parse::<i64>().unwrap())),
    };
    let (key, value) = what.split_once(':').unwrap_or((what, ""));
    let exists = key == "*" || value == "*";
    json!({
        "key": if key == "*" { "" } else { key },
        "operator": if exists { "Exists" } else { "Equal" },
        "value": if exists { "" } else { value },
        "tolerationSeconds": seconds,
    })
}

fn check(given: &str, expected: Expect) {
    let now = Instant::now();
    let (mut taints, mut tolerations, mut due) = (Vec::new(), Vec::new(), None);
    let mut pod = json!({ "metadata": { "name": "p" }, "spec": { "containers": [] } });
    pod["spec"]["nodeName"] = json!("a");
    for word in given.split_whitespace() {
        match word.split_once('=') {
            Some(("taint", text)) => {
                let (key, value) = text.split_once(':').unwrap_or((text, ""));
                taints.push(json!({ "key": key, "value": value, "effect": "NoExecute" }));
            }
            Some(("soft", key)) => taints.push(json!({ "key": key, "effect": "NoSchedule" })),
            Some(("bears", text)) => tolerations.push(toleration(text)),
            Some(("due", seconds)) => due = seconds.parse::<u64>().ok(),
            _ if word == "deleting" => {
                pod["metadata"]["deletionTimestamp"] = json!("2027-01-01T00:00:00Z");
            }
            _ => assert!(["nodeless", "done"].contains(&word), "{word}"),
        }
    }
    pod["spec"]["tolerations"] = json!(tolerations);
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let node = json!({ "metadata": { "name": "a" }, "spec": { "taints": taints } });
    let node: Node = serde_json::from_value(node).unwrap();
    let scheduled = due.map(|seconds| Scheduled {
        uid: String::new(),
        at: now + Duration::from_secs(seconds),
        done: given.contains("done"),
    });
    let node = (!given.contains("nodeless")).then_some(&node);
    let told = match plan(&pod, node, scheduled.as_ref(), now) {
        Decision::Schedule(at) => format!("in {}s", (at - now).as_secs()),
        other => format!("{other:?}"),
    };
    expected.assert_eq(&told);
}

#[test]
fn a_taint_that_is_not_tolerated_deletes_at_once() {
    check("taint=x", expect!["Delete"]);
    check("taint=x:1 bears=x:2@100", expect!["Delete"]);
    check("taint=x taint=y bears=x:*", expect!["Delete"]);
    check("taint=x taint=y bears=x:* due=50", expect!["Delete"]);
}

#[test]
fn the_shortest_of_the_tolerations_that_match_counts() {
    check(
        "taint=x taint=y bears=x:*@300 bears=y:*@30",
        expect!["in 30s"],
    );
    check("taint=x bears=x:*@300 bears=y:*@30", expect!["in 300s"]);
    check("taint=x taint=y bears=x:* bears=y:*@30", expect!["in 30s"]);
    check("taint=x bears=x:*@300 bears=*", expect!["in 300s"]);
    check("taint=x bears=x:*@0", expect!["Delete"]);
    check("taint=x bears=x:*@-5", expect!["Delete"]);
}

#[test]
fn who_tolerates_for_ever_stays() {
    check("taint=x bears=*", expect!["Stay"]);
    check("taint=x:1 bears=x:1 due=10", expect!["Stay"]);
    check("soft=x due=10", expect!["Stay"]);
    check("due=10", expect!["Stay"]);
}

#[test]
fn a_time_that_runs_is_shortened_and_never_prolonged() {
    check("taint=x bears=*@300 due=100", expect!["in 100s"]);
    check(
        "taint=x taint=y bears=x:*@300 bears=y:*@30 due=100",
        expect!["in 30s"],
    );
    check("taint=x bears=*@300 due=0", expect!["Delete"]);
}

#[test]
fn a_node_that_is_gone_stops_no_time() {
    check("nodeless due=100", expect!["in 100s"]);
    check("nodeless due=0", expect!["Delete"]);
    check("nodeless", expect!["Stay"]);
}

#[test]
fn a_pod_that_is_ending_is_left_alone() {
    check("taint=x deleting due=10", expect!["Stay"]);
}

#[test]
fn what_was_deleted_is_neither_deleted_nor_cancelled_again() {
    check("taint=x done due=0", expect!["Nothing"]);
    check("taint=x bears=*@300 done due=0", expect!["Nothing"]);
    check("deleting done due=0", expect!["Nothing"]);
}
