//! Upstream's scenarios of preemption: who goes for whom, and from where.

use super::Scene;

/// `a: p q`, or why nobody goes.
fn goes(text: &str) -> String {
    let told = Scene::of(text).explained();
    match told.preempts {
        Some(plan) => {
            let victims = plan
                .victims
                .iter()
                .map(|one| one.trim_start_matches("default/"));
            let mut victims: Vec<&str> = victims.collect();
            victims.sort_unstable();
            format!("{}: {}", plan.node, victims.join(" "))
        }
        None => told.message.unwrap_or_else(|| "it fits".to_owned()),
    }
}

fn asks(cpu: &str, priority: i32) -> String {
    format!(
        "{{priority: {priority}, containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}"
    )
}

const SMALL: &str = "{status: {allocatable: {cpu: 500m, pods: 32}}}";

#[test]
fn the_less_important_goes() {
    let world = format!("node a {SMALL}\npod victim on=a {}", asks("400m", 100));
    let of = |priority| goes(&format!("{world}\nwaits {}", asks("300m", priority)));
    assert_eq!(of(300), "a: victim");
    let no = "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: \
              1 No preemption victims found for incoming pod.";
    assert_eq!(of(100), no);
}

#[test]
fn nobody_goes_where_it_does_not_help() {
    let cordoned = "node a {unschedulable: true, status: {allocatable: {cpu: 500m, pods: 32}}}";
    let world = format!("{cordoned}\npod victim on=a {}", asks("400m", 100));
    let no = "0/1 nodes are available: 1 node(s) were unschedulable. preemption: 0/1 nodes are \
              available: 1 Preemption is not helpful for scheduling.";
    assert_eq!(goes(&format!("{world}\nwaits {}", asks("300m", 300))), no);
}

/// Both of a node's pods keep the third one off.
#[test]
fn who_is_disliked_goes() {
    let world = |second: i32| {
        format!(
            "node a node=a\npod p0 on=a pod=p0 {{priority: 100, far: ['pod In preemptor by node']}}
             pod p1 on=a pod=p1 {{priority: {second}, far: ['pod In preemptor by node']}}"
        )
    };
    let waits = "waits pod=preemptor {priority: 300, far: ['pod In p0,p1 by node']}";
    assert_eq!(goes(&format!("{}\n{waits}", world(100))), "a: p0 p1");
    // The one that is too important stays, so the end of the other would not help.
    let told = goes(&format!("{}\n{waits}", world(300)));
    assert!(
        told.ends_with(
            "preemption: 0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules."
        ),
        "{told}"
    );
}

#[test]
fn budgets_are_kept_where_that_is_possible() {
    let waits = format!("waits {}", asks("300m", 300));
    let pod = |name: &str, node: &str, label: &str, cpu: &str, priority: i32| {
        format!("pod {name} on={node} {label} {}\n", asks(cpu, priority))
    };
    let one_node = format!("node a {SMALL}\nbudget b allowed=0 foo=bar\n")
        + &pod("low", "a", "foo=bar", "200m", 10)
        + &pod("mid", "a", "", "200m", 100);
    assert_eq!(goes(&format!("{one_node}{waits}")), "a: mid");
    let two = format!("node a {SMALL}\nnode b {SMALL}\nbudget b allowed=0 foo=bar\n")
        + &pod("low", "a", "foo=bar", "400m", 10)
        + &pod("mid", "b", "", "400m", 100);
    assert_eq!(goes(&format!("{two}{waits}")), "b: mid");
    let wide = "{status: {allocatable: {cpu: 400m, pods: 32}}}";
    let mut three =
        format!("node a {wide}\nnode b {wide}\nbudget x allowed=0 one=\nbudget y allowed=0 two=\n");
    for (name, node, label) in [
        ("p", "a", "one="),
        ("q", "a", "one="),
        ("r", "b", "two="),
        ("s", "b", ""),
    ] {
        three += &pod(name, node, label, "200m", 10);
    }
    let all = asks("400m", 300);
    assert_eq!(goes(&format!("{three}waits {all}")), "b: r s");
}

#[test]
fn a_crowded_domain_is_thinned() {
    let mut world =
        "node n1 node=n1 zone=z0\nnode n2 node=n2 zone=z1\nnode n3 node=n3 zone=z1\n".to_owned();
    for (name, node) in [
        ("a", "n1"),
        ("b", "n1"),
        ("c", "n2"),
        ("d", "n2"),
        ("e", "n3"),
    ] {
        world += &format!("pod {name} on={node} foo=\n");
    }
    let waits = "waits foo= {priority: 100, spread: [1 zone foo, 1 node foo]}";
    // As good as on the third node, where one goes as well.
    assert_eq!(goes(&format!("{world}{waits}")), "n1: b");
}
