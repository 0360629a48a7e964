//! Passes over zones, as text: `SECOND ZONE=READY/LOST[/EXCLUDED]...` in, what the pass found out.
//! Nodes of a zone are named after it and numbered, the ready ones first; taints that were handed
//! out are seen by the next pass.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

fn node(zone: &str, name: &str, ready: bool, excluded: bool, tainted: bool) -> Arc<Node> {
    let mut node = json!({
        "metadata": { "name": name, "labels": { "topology.kubernetes.io/zone": zone } },
        "spec": { "taints": [] },
        "status": { "conditions": [
            { "type": "Ready", "status": if ready { "True" } else { "Unknown" } },
        ] },
    });
    if excluded {
        node["metadata"]["labels"]["node.kubernetes.io/exclude-disruption"] = json!("");
    }
    if tainted && !ready {
        node["spec"]["taints"] = json!([{ "key": node::UNREACHABLE, "effect": node::NO_EXECUTE }]);
    }
    Arc::new(serde_json::from_value(node).unwrap())
}

fn nodes(zones: &[&str], tainted: &BTreeSet<String>) -> Vec<Arc<Node>> {
    let mut nodes = Vec::new();
    for word in zones {
        let (zone, counts) = word.split_once('=').unwrap();
        let mut counts = counts
            .split('/')
            .map(|count| count.parse::<usize>().unwrap());
        let ready = counts.next().unwrap();
        let lost = ready + counts.next().unwrap();
        let all = lost + counts.next().unwrap_or(0);
        for number in 0..all {
            let name = format!("{zone}{number}");
            let known = tainted.contains(&name);
            nodes.push(node(zone, &name, number < ready, number >= lost, known));
        }
    }
    nodes
}

fn check(script: &str, expected: Expect) {
    let start = Instant::now();
    let mut zones = Zones::default();
    let mut tainted = BTreeSet::new();
    let mut told = String::new();
    for line in script.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let now = start + Duration::from_secs(words[0].parse().unwrap());
        let pass = zones.pass(&nodes(&words[1..], &tainted), now);
        write!(told, "{}", words[0]).unwrap();
        for (zone, state) in &pass.changes {
            write!(told, " {}={state:?}", zone.trim_start_matches(':')).unwrap();
        }
        for (what, names) in [("taint", &pass.taint), ("spare", &pass.spare)] {
            if !names.is_empty() {
                write!(told, " {what}[{}]", names.join(" ")).unwrap();
            }
        }
        if pass.forgive {
            told.push_str(" forgive");
        }
        if let Some(wait) = pass.look_again {
            write!(told, " again={}s", wait.as_secs()).unwrap();
        }
        told.push('\n');
        tainted.extend(pass.taint);
        tainted.retain(|name| !pass.spare.contains(name));
    }
    expected.assert_eq(&told);
}

#[test]
fn a_zone_hands_out_one_taint_in_ten_seconds() {
    check(
        "0 z=5/2
         4 z=5/2
         10 z=5/2
         100 z=5/2",
        expect![[r#"
            0 z=Normal taint[z5] again=10s
            4 again=6s
            10 taint[z6]
            100
        "#]],
    );
}

#[test]
fn zones_do_not_wait_for_each_other() {
    check(
        "0 y=5/1 z=5/1",
        expect![[r#"
        0 y=Normal z=Normal taint[y5 z5]
    "#]],
    );
}

#[test]
fn a_small_zone_that_is_badly_off_loses_none() {
    check(
        "0 z=5/0
         10 z=2/3
         100 z=2/3
         200 z=3/2
         210 z=3/2",
        expect![[r#"
            0 z=Normal
            10 z=PartialDisruption
            100
            200 z=Normal again=10s
            210 taint[z3] again=10s
        "#]],
    );
}

#[test]
fn a_large_zone_that_is_badly_off_loses_few() {
    check(
        "0 z=60/0
         10 z=20/40
         50 z=20/40
         110 z=20/40",
        expect![[r#"
            0 z=Normal
            10 z=PartialDisruption taint[z20] again=100s
            50 again=60s
            110 taint[z21] again=100s
        "#]],
    );
}

#[test]
fn two_lost_nodes_are_no_disruption() {
    check(
        "0 z=1/2",
        expect![[r#"
        0 z=Normal taint[z1] again=10s
    "#]],
    );
}

#[test]
fn a_zone_that_is_wholly_lost_goes_at_the_normal_rate_while_another_lives() {
    check(
        "0 y=2/0 z=0/4
         10 y=2/0 z=0/4",
        expect![[r#"
            0 y=Normal z=FullDisruption taint[z0] again=10s
            10 taint[z1] again=10s
        "#]],
    );
}

#[test]
fn when_all_zones_are_lost_taints_are_taken_back() {
    check(
        "0 y=2/0 z=1/1
         5 y=0/2 z=0/2
         6 y=0/2 z=0/2
         500 y=1/1 z=0/2
         510 y=1/1 z=0/2",
        expect![[r#"
            0 y=Normal z=Normal taint[z1]
            5 y=FullDisruption z=FullDisruption spare[z1]
            6
            500 y=Normal forgive again=10s
            510 taint[y1 z0] again=10s
        "#]],
    );
}

#[test]
fn a_new_zone_without_a_ready_node_does_not_end_it() {
    check(
        "0 y=0/2
         5 y=0/2 z=0/1
         6 y=0/2 z=1/0
         16 y=0/2 z=1/0",
        expect![[r#"
            0 y=FullDisruption
            5 z=FullDisruption
            6 z=Normal forgive again=10s
            16 taint[y0] again=10s
        "#]],
    );
}

#[test]
fn excluded_nodes_do_not_count_and_are_tainted_all_the_same() {
    check(
        "0 z=1/0/5
         10 z=0/1/5
         20 y=0/0/1",
        expect![[r#"
            0 z=Normal taint[z1] again=10s
            10 z=FullDisruption spare[z1]
            20 y=Normal taint[y0] forgive
        "#]],
    );
}

#[test]
fn a_taint_that_could_not_be_written_is_handed_out_again() {
    let start = Instant::now();
    let mut zones = Zones::default();
    let lost = nodes(&["z=3/1"], &BTreeSet::new());
    assert_eq!(zones.pass(&lost, start).taint, ["z3"]);
    let later = start + Duration::from_secs(20);
    assert_eq!(zones.pass(&lost, later).taint, [""; 0]); // Handed out, not seen yet.
    zones.take_back("z3");
    assert_eq!(zones.pass(&lost, later).taint, ["z3"]);
}
