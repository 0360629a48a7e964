//! Upstream's scenarios of filters, each in a world of its own.

use super::fitting;

/// What is told of a pod in a world.
#[track_caller]
fn check(world: &str, waits: &str, expected: &str) {
    let told = fitting(&format!("{world}\nwaits {waits}"));
    assert_eq!(told, expected, "{waits}\nin\n{world}");
}

const NEAR: &str = "a InterPodAffinity: node(s) didn't match pod affinity rules";
const FAR: &str = "a InterPodAffinity: node(s) didn't match pod anti-affinity rules";
const THEIRS: &str = "a InterPodAffinity: node(s) didn't satisfy existing pods anti-affinity rules";

fn no(why: &str) -> String {
    format!("fits: \n{why}")
}

/// One node with one pod.
fn site(pod: &str) -> String {
    format!("node a region=r1 zone=z11\npod there on=a service=scan {pod}")
}

#[test]
fn a_pod_goes_to_those_that_it_needs() {
    let there = site("");
    let is = |term: &str| format!("security=s1 {{near: ['{term}']}}");
    check(&there, &is("service In scan,other by region"), "fits: a");
    check(
        &there,
        &is("service NotIn scan3,other by region"),
        "fits: a",
    );
    check(&there, &is("service In virus,other by region"), &no(NEAR));
    check(
        "node a region=r1",
        &is("service In scan by region"),
        &no(NEAR),
    );
    let elsewhere = "node a region=r1\npod there on=a ns=ns2 service=scan";
    check(elsewhere, &is("service In scan by region"), &no(NEAR));
    check(
        elsewhere,
        &is("service In scan by region in ns2"),
        "fits: a",
    );
    check(&there, &is("service In scan by region in ns2"), &no(NEAR));
    let both = "{near: ['service Exists and wrong DoesNotExist by region', \
                'service In scan and service NotIn wrong by region']}";
    check(&there, both, "fits: a");
    let one_is_not = "{near: ['service Exists and wrong DoesNotExist by region', \
                      'service In scan2 and service NotIn wrong by region']}";
    check(&there, one_is_not, &no(NEAR));
    let itself = "service=scan {near: ['service NotIn scan,other by region']}";
    check(&there, itself, &no(NEAR));
}

#[test]
fn wants_and_dislikes_of_both_sides_hold() {
    let wants = "near: ['service In scan,other by region']";
    let ok = format!("security=s1 {{{wants}, far: ['service In virus,other by node']}}");
    check(&site(""), &ok, "fits: a");
    let calm = site("{far: ['service In virus,other by node']}");
    check(&calm, &ok, "fits: a");
    let not = format!("security=s1 {{{wants}, far: ['service In scan,other by zone']}}");
    check(&site(""), &not, &no(FAR));
    let angry = site("{far: ['service In scan,other by zone']}");
    let like = format!("service=scan {{{wants}, far: ['service In virus,other by node']}}");
    check(&angry, &like, &no(THEIRS));
    check(&angry, "service=scan", &no(THEIRS));
    check(&angry, "service=else", "fits: a");
}

#[test]
fn nodes_of_one_domain_are_one() {
    let world = "node a region=r1 zone=z11
                 node b region=r1 zone=z11
                 pod there on=a abc=y";
    let told = fitting(&format!("{world}\nwaits {{far: ['abc Exists by region']}}"));
    let why = "InterPodAffinity: node(s) didn't match pod anti-affinity rules";
    assert_eq!(told, format!("fits: \na {why}\nb {why}"));
}

/// The API server writes `matchLabelKeys` and `mismatchLabelKeys` into the selector.
#[test]
fn label_keys_are_in_the_selector_by_now() {
    let world = "node a zone=z1\nnode b zone=z2\npod there on=a foo= bar=a";
    let why = "InterPodAffinity: node(s) didn't match pod anti-affinity rules";
    let is =
        |who: &str, key: &str| format!("foo= bar=a {{{key}: ['foo Exists and {who} by zone']}}");
    check(world, &is("bar In a", "far"), &format!("fits: b\na {why}"));
    check(world, &is("bar NotIn a", "far"), "fits: a b");
    let why = "InterPodAffinity: node(s) didn't match pod affinity rules";
    check(world, &is("bar In a", "near"), &format!("fits: a\nb {why}"));
    check(
        world,
        "foo= bar=b {near: ['foo Exists and bar NotIn b by zone']}",
        &format!("fits: a\nb {why}"),
    );
}

#[test]
fn namespaces_are_chosen_by_their_labels() {
    let world = "namespace here team=1
                 namespace there team=2
                 node a region=r1
                 pod there on=a ns=there service=scan";
    let term = |team: u8| format!("ns=here {{near: ['service In scan by region of team={team}']}}");
    check(world, &term(2), "fits: a");
    check(world, &term(1), &no(NEAR));
}

#[test]
fn every_taint_must_be_tolerated() {
    let node = |taints: &str| format!("node a {{taints: [{taints}]}}");
    let (one, other) = (
        "{key: k1, value: v1, effect: NoSchedule}",
        "{key: k2, value: v2, effect: NoSchedule}",
    );
    let both = node(&format!("{one}, {other}"));
    let bears = |text: &str| format!("{{tolerations: [{text}]}}");
    let (bears_one, bears_other) = (
        "{key: k1, operator: Equal, value: v1, effect: NoSchedule}",
        "{key: k2, operator: Equal, value: v2, effect: NoSchedule}",
    );
    let refused = "fits: \na TaintToleration: node(s) had untolerated taint(s)";
    check(&node(one), &bears(bears_one), "fits: a");
    check(&node(one), "", refused);
    check(&both, &bears(bears_one), refused);
    let all = bears(&format!("{bears_one}, {bears_other}"));
    check(&both, &all, "fits: a");
    check(&node(one), &all, "fits: a");
    check("node a", &all, "fits: a");
    check(&both, &bears("{operator: Exists}"), "fits: a");
    let soft = node("{key: k1, effect: PreferNoSchedule}");
    check(&soft, "", "fits: a");
}

const FOUR: &str = "node n0 node=n0 zone=z0
                    node n1 node=n1 zone=z0
                    node n2 node=n2 zone=z1
                    node n3 node=n3 zone=z1";

/// Four nodes in two zones, with so many pods each.
fn four(counts: [usize; 4]) -> String {
    let mut world = FOUR.to_owned();
    for (node, count) in counts.into_iter().enumerate() {
        for number in 0..count {
            world.push_str(&format!("\npod p{node}{number} on=n{node} foo="));
        }
    }
    world
}

/// Only which nodes fit.
#[track_caller]
fn spread(world: &str, waits: &str, expected: &str) {
    let told = fitting(&format!("{world}\nwaits foo= {waits}"));
    let first = told.lines().next().unwrap();
    assert_eq!(
        first.trim_start_matches("fits:").trim(),
        expected,
        "{waits}\nin\n{world}"
    );
}

#[test]
fn no_domain_is_fuller_than_the_emptiest_by_more_than_the_skew() {
    spread(&four([1, 1, 0, 1]), "{spread: [1 node foo]}", "n2");
    spread(&four([2, 0, 0, 1]), "{spread: [2 node foo]}", "n1 n2 n3");
    let in_zone = "{on: [zone In z0], spread: [1 node foo]}";
    spread(&four([1, 0, 0, 1]), in_zone, "n1");
    let both = "{spread: [1 zone foo, 1 node foo]}";
    spread(&four([1, 1, 0, 2]), both, "n2");
    let three = "{on: [node NotIn n0], spread: [1 zone foo, 1 node foo]}";
    spread(&four([0, 2, 2, 1]), three, "");
}

#[test]
fn few_domains_count_as_if_more_were_empty() {
    let three = |min: u8| format!("{{on: [node NotIn n0], spread: [2 node foo min={min}]}}");
    spread(&four([0, 2, 2, 1]), &three(4), "n3");
    spread(&four([0, 2, 2, 1]), &three(2), "n1 n2 n3");
    let zones = |min: u8| format!("{{spread: [2 zone foo min={min}]}}");
    spread(&four([1, 1, 1, 0]), &zones(3), "n2 n3");
    spread(&four([0, 1, 1, 1]), &zones(1), "n0 n1 n2 n3");
}

/// Four nodes in two zones, one without the label and maybe one with a taint, with a pod each where
/// there is a digit.
fn some(tainted: &str, pods: &str) -> String {
    let mut world = String::new();
    for number in 1..5 {
        let zone = if number < 3 { "z1" } else { "z2" };
        let label = if number == 3 { "" } else { "foo=" };
        let taint = match tainted.contains(&number.to_string()) {
            true => "{taints: [{key: k, effect: NoSchedule}]}",
            false => "",
        };
        world.push_str(&format!(
            "node n{number} node=n{number} zone={zone} {label} {taint}\n"
        ));
    }
    for (place, number) in pods.chars().enumerate() {
        world.push_str(&format!("pod p{place} on=n{number} foo=\n"));
    }
    world
}

#[test]
fn policies_say_which_nodes_take_part() {
    let chosen = "nodeSelector: {foo: ''}";
    let one = |more: &str| format!("{{{chosen}, spread: [1 zone foo {more}]}}");
    spread(&some("", "1234"), &one(""), "n4");
    spread(&some("", "134"), &one("nodes=Ignore"), "n1 n2");
    spread(
        &some("3", "1234"),
        "{spread: [1 zone foo taints=Honor]}",
        "n4",
    );
    spread(&some("3", "1234"), "{spread: [1 zone foo]}", "n1 n2 n4");
    let two = format!("{{{chosen}, spread: [1 zone foo, 1 node foo]}}");
    spread(&some("2", "1234"), &two, "n4");
    let mixed = format!("{{{chosen}, spread: [1 zone foo nodes=Ignore, 1 node foo taints=Honor]}}");
    spread(&some("2", "1344"), &mixed, "n1");
}

#[test]
fn label_keys_narrow_who_is_counted() {
    let world = format!("{FOUR}\npod a on=n0 foo=\npod b on=n1 foo=\npod c on=n2 foo= bar=");
    spread(&world, "bar= {spread: [1 zone foo keys=bar]}", "n0 n1");
    spread(&world, "{spread: [1 zone all keys=foo]}", "n2 n3");
}

#[test]
fn a_port_of_the_machine_is_for_one() {
    let ports = |port: u16, more: &str| {
        format!(
            "{{containers: [{{name: c, ports: [{{containerPort: 80, hostPort: {port}{more}}}]}}]}}"
        )
    };
    let world = format!("node a\npod there on=a {}", ports(8080, ""));
    let taken = "fits: \na NodePorts: node(s) didn't have free ports for the requested pod ports";
    check(&world, &ports(8080, ""), taken);
    check(&world, &ports(8081, ""), "fits: a");
    check(&world, &ports(8080, ", protocol: UDP"), "fits: a");
    check(&world, &ports(8080, ", hostIP: 127.0.0.1"), taken);
    let side = |kind: &str, more: &str| {
        format!("{{{kind}: [{{name: i, ports: [{{containerPort: 80, hostPort: 8080}}]{more}}}]}}")
    };
    check(
        &world,
        &side("initContainers", ", restartPolicy: Always"),
        taken,
    );
    // One that ends is gone before others need its port.
    check(&world, &side("initContainers", ""), "fits: a");
}

#[test]
fn what_is_asked_for_must_be_left() {
    let node = "node a {status: {allocatable: {cpu: 1, memory: 1Gi, pods: 1}}}";
    let asks =
        |cpu: u8| format!("{{containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}");
    check(node, &asks(1), "fits: a");
    check(
        node,
        &asks(2),
        "fits: \na NodeResourcesFit: Insufficient cpu",
    );
    let full = format!("{node}\npod there on=a");
    check(&full, "", "fits: \na NodeResourcesFit: Too many pods");
}

#[test]
fn nodes_are_chosen_by_labels_and_names() {
    let world = "node a foo=bar\nnode b";
    let refused = |node: &str| {
        format!("{node} NodeAffinity: node(s) didn't match Pod's node affinity/selector")
    };
    let only = |fits: &str, other: &str| format!("fits: {fits}\n{}", refused(other));
    check(world, "{on: ['foo In bar,other']}", &only("a", "b"));
    check(
        world,
        "{on: [foo In else]}",
        &format!("fits: \n{}\n{}", refused("a"), refused("b")),
    );
    check(world, "{on: [foo NotIn bar]}", &only("b", "a"));
    check(world, "{on: [foo Exists]}", &only("a", "b"));
    check(world, "{on: [foo DoesNotExist]}", &only("b", "a"));
    check(world, "{nodeSelector: {foo: bar}}", &only("a", "b"));
    let by_both = "{affinity: {}, on: [foo In bar]}";
    check(world, by_both, &only("a", "b"));
}

#[test]
fn a_node_must_declare_what_the_pod_needs() {
    let world = "node a
                 node b {status: {declaredFeatures: [RestartAllContainersOnContainerExits]}}
                 node c {status: {declaredFeatures: [Else, RestartAllContainersOnContainerExits]}}";
    let needs = "{containers: [{name: c, restartPolicyRules: [{action: RestartAllContainers}]}]}";
    let why = "a NodeDeclaredFeatures: node(s) didn't match Pod's required features";
    check(world, needs, &format!("fits: b c\n{why}"));
    check(world, "", "fits: a b c");
}

#[test]
fn a_cordoned_node_is_for_those_who_bear_it() {
    let world = "node a {unschedulable: true}\nnode b";
    let why = "a NodeUnschedulable: node(s) were unschedulable";
    check(world, "", &format!("fits: b\n{why}"));
    let bears = "{tolerations: [{key: node.kubernetes.io/unschedulable, operator: Exists}]}";
    check(world, bears, "fits: a b");
}
