//! Order, backoff and waking of the queue.

use super::*;
use crate::framework::{Plugin, Points, Profile, SharedPlugin};
use crate::node_facts::NodeFacts;
use crate::plugins::{node_resources_fit, priority_sort, scheduling_gates, taint_toleration};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

fn profile() -> Profile {
    Profile::new(
        "default-scheduler",
        vec![
            (Arc::new(priority_sort::PrioritySort), 0),
            (Arc::new(taint_toleration::TaintToleration), 3),
            (Arc::new(node_resources_fit::NodeResourcesFit::default()), 1),
        ],
    )
}

fn pod(name: &str, priority: i32) -> Arc<PodInfo> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": name, "namespace": "default", "uid": name },
        "spec": { "priority": priority, "containers": [] },
    }))
    .unwrap();
    Arc::new(PodInfo::new(Arc::new(pod)))
}

fn node(taints: serde_json::Value) -> Arc<NodeFacts> {
    let node = json!({
        "metadata": { "name": "n" }, "spec": { "taints": taints },
        "status": { "allocatable": { "cpu": "1", "pods": "9" } },
    });
    NodeFacts::of(&serde_json::from_value(node).unwrap())
}

fn take(queue: &Queue) -> Option<Attempt> {
    let mut state = queue.state.lock();
    let now = Instant::now();
    state.flush(now);
    state.take(now)
}

fn names(queue: &Queue) -> Vec<String> {
    std::iter::from_fn(|| take(queue))
        .map(|attempt| attempt.pod.key.name.clone())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn higher_priority_goes_first_then_who_came_first() {
    let queue = Queue::new(profile());
    for (name, priority) in [("a", 0), ("b", 10), ("c", 0), ("d", 10)] {
        queue.set(pod(name, priority), Instant::now());
    }
    assert_eq!(names(&queue), ["b", "d", "a", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_found_no_nodes_at_all_wakes_with_the_first() {
    let queue = Queue::new(profile());
    queue.set(pod("a", 0), Instant::now());
    let attempt = queue.next().await;
    queue.unschedulable(&attempt, Vec::new(), Instant::now());
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(take(&queue).is_none());
    let change = WorldChange::NodeAdded(node(json!([])));
    queue.world_changed(change, Instant::now());
    assert_eq!(take(&queue).map(|attempt| attempt.number), Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_no_node_fits_waits_for_a_change_that_can_help() {
    let queue = Queue::new(profile());
    queue.set(pod("a", 0), Instant::now());
    let attempt = queue.next().await;
    queue.unschedulable(&attempt, vec!["TaintToleration"], Instant::now());
    tokio::time::advance(Duration::from_secs(2)).await;

    let tainted = json!([{ "key": "k", "effect": "NoSchedule" }]);
    queue.world_changed(
        WorldChange::NodeAdded(node(tainted.clone())),
        Instant::now(),
    );
    assert!(take(&queue).is_none(), "a tainted node does not help");

    let change = WorldChange::NodeUpdated {
        old: node(tainted),
        new: node(json!([])),
    };
    queue.world_changed(change, Instant::now());
    assert_eq!(queue.next().await.number, 2);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_came_during_the_attempt_is_not_lost() {
    let queue = Queue::new(profile());
    queue.set(pod("a", 0), Instant::now());
    let attempt = queue.next().await;
    queue.world_changed(WorldChange::NodeAdded(node(json!([]))), Instant::now());
    queue.unschedulable(&attempt, vec!["TaintToleration"], Instant::now());
    assert_eq!(queue.depth().backoff, 1);
    assert_eq!(queue.next().await.number, 2, "after its delay");
}

#[tokio::test(start_paused = true)]
async fn delays_double_up_to_a_bound_and_nobody_waits_for_ever() {
    let queue = Queue::new(profile());
    queue.set(pod("a", 0), Instant::now());
    let mut delays = Vec::new();
    let mut before = Instant::now();
    for _ in 0..6 {
        let attempt = queue.next().await;
        delays.push((Instant::now() - before).as_secs());
        before = Instant::now();
        queue.retry(&attempt, Instant::now());
    }
    assert_eq!(delays, [0, 1, 2, 4, 8, 10]);

    let attempt = queue.next().await;
    let before = Instant::now();
    queue.unschedulable(&attempt, vec!["NodeResourcesFit"], Instant::now());
    queue.next().await;
    assert_eq!(Instant::now() - before, UNSCHEDULABLE_MAX);
}

#[tokio::test(start_paused = true)]
async fn a_pod_in_flight_is_not_handed_out_again_and_may_be_deleted() {
    let queue = Queue::new(profile());
    queue.set(pod("a", 0), Instant::now());
    let attempt = queue.next().await;
    queue.set(pod("a", 0), Instant::now());
    assert!(take(&queue).is_none());
    queue.remove("a");
    queue.unschedulable(&attempt, vec![], Instant::now());
    queue.retry(&attempt, Instant::now());
    assert_eq!(queue.depth(), Depth::default());
}

#[tokio::test(start_paused = true)]
async fn a_pod_changed_in_flight_is_tried_again() {
    let queue = Queue::new(profile());
    queue.set(pod("a", 0), Instant::now());
    let attempt = queue.next().await;
    queue.set(pod("a", 5), Instant::now());
    queue.unschedulable(&attempt, vec!["NodeResourcesFit"], Instant::now());
    let again = queue.next().await;
    assert_eq!((again.number, again.pod.priority), (2, 5));
}

/// Keeps every pod out.
#[derive(Debug)]
struct Closed;

impl Plugin for Closed {
    fn name(&self) -> &'static str {
        "Closed"
    }

    fn points(&self) -> Points {
        Points::NONE
    }

    fn pre_enqueue(&self, _pod: &PodInfo) -> bool {
        false
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_kept_out_is_counted_with_who_keeps_it_out_by_now() {
    let gates: SharedPlugin = Arc::new(scheduling_gates::SchedulingGates);
    let plugins = vec![(gates, 0), (Arc::new(Closed) as SharedPlugin, 0)];
    let queue = Queue::new(Profile::new("default-scheduler", plugins));
    let refused = || {
        queue
            .figures()
            .refused
            .into_keys()
            .map(|(plugin, _)| plugin)
    };
    let mut gated = Pod::clone(pod("a", 0).waiting.as_ref().unwrap());
    let gates = serde_json::from_value(json!([{ "name": "g" }])).unwrap();
    gated.spec.as_mut().unwrap().scheduling_gates = gates;
    queue.set(Arc::new(PodInfo::new(Arc::new(gated))), Instant::now());
    assert!(refused().eq(["SchedulingGates"]));
    queue.set(pod("a", 0), Instant::now());
    assert!(refused().eq(["Closed"]));
}
