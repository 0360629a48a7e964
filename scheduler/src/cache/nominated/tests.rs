//! Promises of nodes: what the scheduler decided, and what the API shows meanwhile.

use super::*;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

fn pod(name: &str, nominated: &str) -> Arc<PodInfo> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": name, "namespace": "default", "uid": name },
        "spec": { "containers": [] },
        "status": { "nominatedNodeName": nominated },
    }))
    .unwrap();
    Arc::new(PodInfo::new(Arc::new(pod)))
}

fn on(nominated: &Nominated, node: &str) -> String {
    let names = nominated.on(node).iter().map(|pod| pod.uid.as_str());
    names.collect::<Vec<_>>().join(" ")
}

#[test]
fn what_was_decided_stands_until_the_api_shows_something_else() {
    let mut nominated = Nominated::default();
    assert!(nominated.nominate(&pod("a", ""), Some("n")));
    assert!(!nominated.set(&pod("a", "")), "an update on its way");
    assert_eq!(on(&nominated, "n"), "a");
    assert!(!nominated.set(&pod("a", "n")), "the API shows it");
    assert!(!nominated.nominate(&pod("a", "n"), Some("n")), "no news");
    assert!(nominated.set(&pod("a", "m")), "somebody else moved it");
    assert_eq!([on(&nominated, "n"), on(&nominated, "m")], ["", "a"]);
    assert!(nominated.set(&pod("a", "")), "somebody took it back");
    assert_eq!(nominated.node_of("a"), None);
}

#[test]
fn what_was_taken_back_does_not_return_by_an_update_on_its_way() {
    let mut nominated = Nominated::default();
    nominated.set(&pod("a", "n"));
    assert!(nominated.nominate(&pod("a", "n"), None));
    assert!(!nominated.set(&pod("a", "n")));
    assert_eq!(on(&nominated, "n"), "");
    // Nothing is kept of a pod that neither the API nor the scheduler promises a node.
    nominated.set(&pod("a", ""));
    assert!(nominated.entries.is_empty() && nominated.by_node.is_empty());
}

#[test]
fn several_pods_are_promised_a_node_and_each_can_be_forgotten() {
    let mut nominated = Nominated::default();
    nominated.set(&pod("a", "n"));
    nominated.set(&pod("b", "n"));
    let mut copy = Nominated::default();
    nominated.update(&mut copy);
    assert_eq!(on(&copy, "n"), "a b");
    assert!(nominated.forget("a"));
    assert!(!nominated.forget("a"));
    nominated.update(&mut copy);
    assert_eq!(on(&copy, "n"), "b");
}
