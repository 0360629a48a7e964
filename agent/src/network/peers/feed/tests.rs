//! What is known survives a restart, and a list takes away what is not in it.

use super::{Known, Listed};
use coracle_client::informer::{Event, Sink};
use k8s_openapi::api::core::v1::Node;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

fn node(name: &str, network: &str) -> Node {
    serde_json::from_value(json!({
        "metadata": { "name": name, "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "podCIDR": network, "podCIDRs": [network] },
        "status": { "addresses": [
            { "type": "InternalIP", "address": "10.99.0.2" },
            { "type": "Hostname", "address": name },
        ] },
    }))
    .unwrap()
}

fn names(known: &Known) -> Vec<String> {
    let nodes = known.nodes().unwrap();
    nodes.keys().map(ToString::to_string).collect()
}

#[test]
fn events_change_what_is_known_and_heartbeats_do_not() {
    let directory = tempfile::tempdir().unwrap();
    let known = Known::open(directory.path().join("network.peers"));
    let mut sink = Listed {
        known: known.clone(),
        names: BTreeSet::new(),
    };
    let versions = known.subscribe();
    let version = || *versions.borrow();
    sink.apply(Event::Init);
    sink.apply(Event::InitApply(node("a", "10.42.1.0/24")));
    sink.apply(Event::InitApply(node("b", "10.42.2.0/24")));
    // Part of a list is not what there is.
    assert_eq!(known.nodes(), None);
    sink.apply(Event::InitDone);
    assert_eq!(
        (names(&known), version()),
        (vec!["a".to_owned(), "b".to_owned()], 3)
    );
    sink.apply(Event::Apply(node("a", "10.42.1.0/24")));
    assert_eq!(version(), 3);
    sink.apply(Event::Apply(node("a", "10.42.9.0/24")));
    assert_eq!(&*known.nodes().unwrap()["a"].networks[0], "10.42.9.0/24");
    assert_eq!(
        known.nodes().unwrap()["a"].addresses[0].to_string(),
        "10.99.0.2"
    );
    sink.apply(Event::Delete(node("b", "10.42.2.0/24")));
    assert_eq!(names(&known), ["a"]);
    sink.apply(Event::Init);
    sink.apply(Event::InitApply(node("c", "10.42.3.0/24")));
    assert_eq!(names(&known), ["a", "c"]);
    sink.apply(Event::InitDone);
    assert_eq!(names(&known), ["c"]);
}

#[tokio::test(start_paused = true)]
async fn the_next_start_knows_what_this_one_knew() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("network.peers");
    let known = Known::open(file.clone());
    let stop = CancellationToken::new();
    let keeper = known.clone();
    let keeping = {
        let stop = stop.clone();
        tokio::spawn(async move { keeper.keep(stop).await })
    };
    tokio::task::yield_now().await;
    known.set(super::Peer::of(&node("a", "10.42.1.0/24")));
    known.keep_listed(&["a".into()].into());
    tokio::time::sleep(Duration::from_secs(10)).await;
    stop.cancel();
    keeping.await.unwrap();
    assert!(known.nodes().is_some());
    assert_eq!(Known::open(file.clone()).nodes(), known.nodes());
    std::fs::write(&file, "no nodes").unwrap();
    assert_eq!(Known::open(file).nodes(), None);
}
