//! Upstream's scenarios of scores: which node is liked best.

use super::given;

#[track_caller]
fn check(plugin: &str, world: &str, waits: &str, expected: &str) {
    let told = given(&format!("{world}\nwaits {waits}"), plugin);
    assert_eq!(told, expected, "{waits}\nin\n{world}");
}

/// A sidecar counts beside the containers, on the node as in the pod.
#[test]
fn sidecars_count_in_what_is_left() {
    let asks = |cpu: &str| format!("resources: {{requests: {{cpu: {cpu}, memory: 1Gi}}}}");
    let room = "{status: {allocatable: {cpu: 8, memory: 8Gi, pods: 9}}}";
    let world = format!(
        "node a {room}\nnode b {room}
         pod p on=a {{initContainers: [{{name: s, restartPolicy: Always, {}}}],
            containers: [{{name: c, {}}}]}}
         pod q on=b {{containers: [{{name: c, {}}}]}}",
        asks("2"),
        asks("2"),
        asks("2")
    )
    .replace(",\n", ",");
    let waits = format!("{{containers: [{{name: c, {}}}]}}", asks("2"));
    check("NodeResourcesFit", &world, &waits, "a=43 b=62");
}

#[test]
fn wishes_for_nodes_add_up() {
    let world = "node a\nnode b foo=bar\nnode c foo=bar disk=ssd";
    let wish = "{wish: [20 foo In bar, 10 disk Exists]}";
    check("NodeAffinity", world, wish, "a=0 b=66 c=100");
}

#[test]
fn pods_are_drawn_to_and_driven_from_others() {
    let world = "node a zone=z1\nnode b zone=z2\npod there on=a service=scan";
    let near = "{near: ['50 service In scan by zone']}";
    check("InterPodAffinity", world, near, "a=100 b=0");
    let far = "{far: ['50 service In scan by zone']}";
    check("InterPodAffinity", world, far, "a=0 b=100");
    let teams = "namespace one team=1\nnamespace two team=2\nnode a zone=z1\nnode b zone=z2
                 pod there on=a ns=two service=scan";
    let of = |team: u8| format!("ns=one {{near: ['50 service In scan by zone of team={team}']}}");
    check("InterPodAffinity", teams, &of(2), "a=100 b=0");
    check("InterPodAffinity", teams, &of(1), "");
}

/// The API server writes `matchLabelKeys` and `mismatchLabelKeys` into the selector.
#[test]
fn label_keys_narrow_who_draws() {
    let world = "node a zone=z1\nnode b zone=z2
                 pod p on=a foo= bar=a
                 pod q on=b foo= bar=b";
    let is =
        |kind: &str, who: &str| format!("bar=a {{{kind}: ['9 foo Exists and {who} by zone']}}");
    check(
        "InterPodAffinity",
        world,
        &is("near", "bar In a"),
        "a=100 b=0",
    );
    check(
        "InterPodAffinity",
        world,
        &is("near", "bar NotIn a"),
        "a=0 b=100",
    );
    check(
        "InterPodAffinity",
        world,
        &is("far", "bar In a"),
        "a=0 b=100",
    );
    check(
        "InterPodAffinity",
        world,
        &is("far", "bar NotIn a"),
        "a=100 b=0",
    );
}

#[test]
fn nodes_with_soft_taints_are_liked_less() {
    let world = "node a {taints: [{key: k, value: v, effect: PreferNoSchedule}]}\nnode b";
    check("TaintToleration", world, "", "a=0 b=100");
    let bears = "{tolerations: [{key: k, operator: Equal, value: v, effect: PreferNoSchedule}]}";
    check("TaintToleration", world, bears, "a=100 b=100");
    check("TaintToleration", "node a\nnode b", "", "a=100 b=100");
}

#[test]
fn nodes_with_the_image_are_liked() {
    let image = "{names: ['big:1'], sizeBytes: 3000000000}";
    let world = format!("node a {{status: {{images: [{image}]}}}}\nnode b");
    let waits = "{containers: [{name: c, image: 'big:1'}]}";
    check("ImageLocality", &world, waits, "a=100 b=0");
}

const FOUR: &str = "node n0 node=n0 zone=z0 {taints: [{key: k, effect: NoSchedule}]}
                    node n1 node=n1 zone=z0
                    node n2 node=n2 zone=z1
                    node n3 node=n3 zone=z1\n";

/// The nodes that are liked best, of those that fit.
#[track_caller]
fn best(world: &str, waits: &str, expected: &str) {
    let told = given(&format!("{world}\nwaits foo= {waits}"), "PodTopologySpread");
    let scores = told.split(' ').map(|one| one.split_once('=').unwrap());
    let scores: Vec<(&str, i64)> = scores
        .map(|(name, score)| (name, score.parse().unwrap()))
        .collect();
    let most = scores.iter().map(|(_, score)| *score).max();
    let best = scores.iter().filter(|(_, score)| Some(*score) == most);
    let best: Vec<&str> = best.map(|(name, _)| *name).collect();
    assert_eq!(best.join(" "), expected, "{told} of {waits}\nin\n{world}");
}

fn pods(world: &str, on: &[(&str, &str)]) -> String {
    let mut world = world.to_owned();
    for (place, (node, labels)) in on.iter().enumerate() {
        world.push_str(&format!("pod p{place} on={node} foo= {labels}\n"));
    }
    world
}

#[test]
fn emptier_domains_are_liked() {
    let on = [
        ("n1", ""),
        ("n2", ""),
        ("n2", ""),
        ("n3", ""),
        ("n3", ""),
        ("n3", ""),
    ];
    best(&pods(FOUR, &on), "{spread: [1 node foo soft]}", "n1");
    best(
        &pods(FOUR, &on),
        "{spread: [1 node all soft keys=foo]}",
        "n1",
    );
    let on = [
        ("n0", ""),
        ("n0", ""),
        ("n0", ""),
        ("n0", ""),
        ("n2", ""),
        ("n3", ""),
        ("n3", ""),
    ];
    best(
        &pods(FOUR, &on),
        "{spread: [1 node foo soft, 1 zone foo]}",
        "n2",
    );
    let on = [
        ("n1", "bar="),
        ("n2", ""),
        ("n2", ""),
        ("n3", "bar="),
        ("n3", "bar="),
        ("n3", ""),
    ];
    best(
        &pods(FOUR, &on),
        "bar= {spread: [1 node foo soft keys=bar]}",
        "n2",
    );
}

#[test]
fn policies_say_who_is_counted_softly_too() {
    let world = "node n1 node=n1 zone=z1 foo=
                 node n2 node=n2 zone=z1 foo= {taints: [{key: k, effect: NoSchedule}]}
                 node n3 node=n3 zone=z2 foo=
                 node n4 node=n4 zone=z2\n";
    let world = pods(world, &[("n1", ""), ("n2", ""), ("n2", ""), ("n4", "")]);
    let chosen = "nodeSelector: {foo: ''}";
    let plain = format!("{{{chosen}, spread: [1 zone foo soft, 1 node foo soft]}}");
    best(&world, &plain, "n3");
    let mixed = format!(
        "{{{chosen}, spread: [1 zone foo soft nodes=Ignore, 1 node foo soft taints=Honor]}}"
    );
    best(&world, &mixed, "n3");
}
