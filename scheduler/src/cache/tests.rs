//! Assumed pods, nodes that come back, images over nodes.

use super::*;
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

fn node(name: &str) -> Arc<Node> {
    Arc::new(
        serde_json::from_value(json!({
            "metadata": { "name": name },
            "status": {
                "allocatable": { "cpu": "4" },
                "images": [{ "names": ["a:1"], "sizeBytes": 7 }],
            },
        }))
        .unwrap(),
    )
}

fn pod(uid: &str, node: &str) -> Arc<PodInfo> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": uid, "uid": uid },
        "spec": {
            "nodeName": node,
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1" } },
                "ports": [{ "containerPort": 80, "hostPort": 80 }] }],
        },
    }))
    .unwrap();
    Arc::new(PodInfo::new(Arc::new(pod)))
}

/// `name used/pods/ports` a node.
fn shown(cache: &Cache, snapshot: &mut Snapshot) -> Vec<String> {
    cache.update(snapshot);
    let line = |info: &NodeInfo| {
        let used = info.requested.milli_cpu;
        format!(
            "{} {used}/{}/{}",
            info.name,
            info.pods.len(),
            info.host_ports.len()
        )
    };
    snapshot.nodes.iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn an_assumed_pod_counts_until_confirmed_forgotten_or_expired() {
    let (mut cache, mut snapshot) = (Cache::default(), Snapshot::default());
    cache.set_node(&node("a"));
    cache.set_node(&node("b"));
    cache.assume(pod("p", ""), "a");
    assert_eq!(shown(&cache, &mut snapshot), ["a 1000/1/1", "b 0/0/0"]);
    cache.forget("p");
    assert_eq!(shown(&cache, &mut snapshot), ["a 0/0/0", "b 0/0/0"]);

    cache.assume(pod("p", ""), "a");
    cache.set_pod(pod("p", "b"));
    cache.forget("p");
    assert_eq!(
        shown(&cache, &mut snapshot),
        ["a 0/0/0", "b 1000/1/1"],
        "confirmed elsewhere"
    );

    cache.assume(pod("q", ""), "a");
    assert!(
        cache.expire(Instant::now() + ASSUMED_MAX * 2).is_empty(),
        "still binding"
    );
    cache.finish_binding("q", Instant::now());
    assert_eq!(cache.expire(Instant::now() + ASSUMED_MAX).len(), 1);
    assert_eq!(shown(&cache, &mut snapshot), ["a 0/0/0", "b 1000/1/1"]);
}

#[test]
fn what_the_api_shows_is_not_taken_over_by_what_is_assumed() {
    let (mut cache, mut snapshot) = (Cache::default(), Snapshot::default());
    cache.set_node(&node("a"));
    cache.set_node(&node("b"));
    cache.set_pod(pod("p", "a"));
    assert_eq!(cache.assume(pod("p", ""), "b"), None);
    cache.forget("p");
    assert_eq!(shown(&cache, &mut snapshot), ["a 1000/1/1", "b 0/0/0"]);
}

#[test]
fn a_pod_that_comes_elsewhere_gives_up_what_was_kept_for_it() {
    let mut cache = Cache::default();
    let (news, gave_up) = (true, true);
    let promised = |cache: &mut Cache| cache.nominate(&pod("p", ""), Some("a"));
    assert_eq!(promised(&mut cache).gave_up, !gave_up);
    let settled = |is_news, gave_up| Settled { is_news, gave_up };
    assert_eq!(cache.nominate(&pod("p", ""), None), settled(news, gave_up));
    promised(&mut cache);
    let there = cache.assume(pod("p", ""), "a");
    assert_eq!(there, Some(settled(news, !gave_up)));
    let moved = cache.set_pod(pod("p", "b"));
    assert_eq!(moved, settled(news, gave_up));
    assert_eq!(cache.set_pod(pod("p", "b")), settled(!news, !gave_up));
    cache.remove_pod("p");
    promised(&mut cache);
    assert_eq!(
        cache.assume(pod("p", ""), "b"),
        Some(settled(news, gave_up))
    );
}

#[test]
fn a_node_that_goes_and_comes_back_keeps_its_pods() {
    let (mut cache, mut snapshot) = (Cache::default(), Snapshot::default());
    cache.set_pod(pod("p", "a"));
    assert!(
        shown(&cache, &mut snapshot).is_empty(),
        "a node is offered once it is known"
    );
    cache.set_node(&node("a"));
    assert_eq!(shown(&cache, &mut snapshot), ["a 1000/1/1"]);
    cache.remove_node("a");
    assert!(shown(&cache, &mut snapshot).is_empty());
    cache.set_node(&node("a"));
    assert_eq!(shown(&cache, &mut snapshot), ["a 1000/1/1"]);
    cache.remove_node("a");
    cache.remove_pod("p");
    assert!(cache.nodes.is_empty() && cache.pods.is_empty() && cache.images.all().next().is_none());
}

#[test]
fn images_are_counted_over_nodes() {
    let (mut cache, mut snapshot) = (Cache::default(), Snapshot::default());
    let image = |name: &str, size: i64| json!({ "names": [name], "sizeBytes": size });
    let mut set = |name: &str, images: &[&Value]| {
        let mut node = Node::clone(&node(name));
        let status = node.status.get_or_insert_default();
        status.images = serde_json::from_value(json!(images)).unwrap();
        cache.set_node(&node);
        cache.audit().unwrap();
        cache.update(&mut snapshot);
        let of = |name| snapshot.image(name).map(|(_, of)| (of.nodes, of.size));
        ["a:1", "b:1"].map(of)
    };
    let (a, b) = (image("a:1", 7), image("b:1", 9));
    assert_eq!(set("a", &[&a]), [Some((1, 7)), None]);
    let other = image("a:1", 8);
    assert_eq!(set("b", &[&other, &other]), [Some((2, 7)), None]);
    assert_eq!(set("b", &[&a]), [Some((2, 7)), None]);
    assert_eq!(set("b", &[&b, &a]), [Some((2, 7)), Some((1, 9))]);
    assert_eq!(set("b", &[&b]), [Some((1, 7)), Some((1, 9))]);
    assert_eq!(set("a", &[]), [None, Some((1, 9))]);
    let known = cache.images.ids_given();
    cache.set_node(&node("c"));
    assert_eq!(cache.images.ids_given(), known, "a free id is used again");
    for name in ["a", "b", "c"] {
        cache.remove_node(name);
    }
    assert!(cache.images.all().next().is_none());
}

#[test]
fn a_heartbeat_is_no_news_and_changes_no_snapshot() {
    let (mut cache, mut snapshot) = (Cache::default(), Snapshot::default());
    let first = node("a");
    let came = cache.set_node(&first);
    assert!(matches!(came, NodeNews::Came(new) if *new.name == *"a"));
    let mut later = Node::clone(&first);
    later.metadata.resource_version = Some("2".to_owned());
    let before = cache.generation;
    assert_eq!(cache.set_node(&later), NodeNews::Nothing);
    assert_eq!(cache.generation, before);
    later.spec.get_or_insert_default().unschedulable = Some(true);
    let changed = cache.set_node(&later);
    assert!(matches!(changed, NodeNews::Changed { old, new }
        if !old.is_unschedulable && new.is_unschedulable));
    later.metadata.uid = Some("another".to_owned());
    assert!(matches!(cache.set_node(&later), NodeNews::Replaced { .. }));
    assert!(
        cache
            .remove_node("a")
            .is_some_and(|gone| *gone.uid == *"another")
    );
    assert_eq!(cache.remove_node("a"), None);
    assert!(shown(&cache, &mut snapshot).is_empty());
}
