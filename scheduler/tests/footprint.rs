//! What the cache takes for each node and pod, and what a cycle asks of the heap. `--nocapture` shows it.
#![allow(clippy::print_stdout)] // The figures are for people.

use coracle_scheduler::cache::{Cache, Snapshot};
use coracle_scheduler::cycle::{self, Outcome, Rotation};
use coracle_scheduler::pod_info::{PodInfo, TraitsTable};
use coracle_scheduler::views::Views;
use std::sync::Arc;

#[path = "../benches/cycle/counting.rs"]
mod counting;
#[path = "../benches/cycle/made.rs"]
mod made;
#[path = "../benches/cycle/profile.rs"]
mod profile;

/// Among so many what they have in common weighs nothing.
const NODES: usize = 1_000;
const PODS: usize = 5_000;
const CYCLES: usize = 100;

fn each(count: usize, work: impl FnOnce()) -> usize {
    let before = counting::live();
    work();
    counting::live().saturating_sub(before) / count
}

/// The one test of this file: others beside it would be counted, too.
#[test]
fn nodes_and_pods_take_little_and_cycles_ask_for_little() {
    let (views, traits) = (Views::default(), TraitsTable::default());
    let profile = profile::profile(&views);
    let (mut cache, mut snapshot) = (Cache::default(), Snapshot::default());
    let pod = |number: usize, node: Option<&str>| {
        let pod = Arc::new(made::pod("plain", number, node));
        Arc::new(PodInfo::sharing(pod, &traits))
    };
    let node = each(NODES, || {
        (0..NODES).for_each(|number| drop(cache.set_node(&made::node(number))));
    });
    let copy = each(NODES, || cache.update(&mut snapshot));
    let placed = each(PODS, || {
        for number in 0..PODS {
            let node = format!("node-{:05}", number % NODES);
            cache.set_pod(pod(number, Some(&node)));
        }
    });
    cache.update(&mut snapshot);
    let mut rotation = Rotation::default();
    let mut asked = 0;
    for number in PODS..PODS + CYCLES {
        let pod = pod(number, None);
        let before = counting::asked();
        let outcome = cycle::run(&profile, &snapshot, &pod, &mut rotation, |_| 0);
        asked += counting::asked() - before;
        assert!(matches!(outcome, Outcome::Node(_)), "{outcome:?}");
    }
    let asked = asked / CYCLES;
    println!("a node {node} B, its copy {copy} B, a pod {placed} B, {asked} allocations a cycle");
    assert!(node < 2048 && copy < 512, "{node} B and {copy} B a node");
    assert!(placed < 1024, "{placed} B a pod");
    assert!(asked < 100, "{asked} allocations a cycle");
}
