//! What lists and watches of pods leave in cache and queue.

use super::*;
use crate::framework::{Profile, Profiles};
use crate::plugins::priority_sort::PrioritySort;
use crate::queue::{Backoff, Queue};
use crate::views::Views;
use serde_json::json;

fn sink() -> Pods {
    let profile = Profile::new("default-scheduler", vec![(Arc::new(PrioritySort), 0)]);
    let profiles = Profiles::new([profile]);
    let world = World {
        views: Views::default(),
        queue: Arc::new(Queue::of(profiles.clone(), Backoff::default())),
        profiles,
    };
    Pods::new(world, watch::channel(false).0)
}

/// `NAME UID VERSION [NODE]`
fn pod(text: &str) -> Pod {
    let words: Vec<&str> = text.split_whitespace().collect();
    serde_json::from_value(json!({
        "metadata": {"name": words[0], "namespace": "default", "uid": words[1],
            "resourceVersion": words[2], "labels": {"app": "web"}},
        "spec": {"containers": [], "nodeName": words.get(3)},
    }))
    .unwrap()
}

fn list(sink: &mut Pods, pods: &[&str]) {
    sink.told(Event::Init);
    for text in pods {
        sink.told(Event::InitApply(pod(text)));
    }
    sink.told(Event::InitDone);
}

impl Pods {
    /// The uids that are known, with `placed` or `queued`.
    fn shown(&self) -> Vec<String> {
        let cache = self.world.views.cache.lock();
        let place = |uid: &str| match (cache.contains(uid), self.world.queue.is_known(uid)) {
            (true, false) => "placed",
            (false, true) => "queued",
            (true, true) => "both",
            (false, false) => "nowhere",
        };
        let known = self.known.keys();
        let mut shown: Vec<_> = known.map(|uid| format!("{uid} {}", place(uid))).collect();
        shown.sort();
        shown
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_read_again_takes_away_what_is_gone() {
    let mut sink = sink();
    list(&mut sink, &["a 1 1", "b 2 1 node", "c 3 1", "d 4 1 node"]);
    assert!(*sink.synced.borrow());
    assert_eq!(
        sink.shown(),
        ["1 queued", "2 placed", "3 queued", "4 placed"]
    );
    list(&mut sink, &["a 1 1", "b 2 1 node"]);
    assert_eq!(sink.shown(), ["1 queued", "2 placed"]);
    assert!(!sink.world.queue.is_known("3") && !sink.world.views.cache.lock().contains("4"));
}

#[tokio::test(start_paused = true)]
async fn a_pod_in_the_place_of_another_is_another() {
    let mut sink = sink();
    list(&mut sink, &["a 1 1 node"]);
    list(&mut sink, &["a 2 5"]);
    assert_eq!(sink.shown(), ["2 queued"]);
    sink.told(Event::Delete(pod("a 2 6")));
    assert!(sink.shown().is_empty() && !sink.world.queue.is_known("2"));
}

#[tokio::test(start_paused = true)]
async fn only_a_pod_that_waits_is_kept_whole() {
    let mut sink = sink();
    sink.told(Event::Apply(pod("a 1 1")));
    assert!(sink.known["1"].waiting.is_some());
    sink.told(Event::Apply(pod("a 1 2 node")));
    sink.told(Event::Apply(pod("b 2 3 node")));
    assert_eq!(sink.shown(), ["1 placed", "2 placed"]);
    let [one, other] = ["1", "2"].map(|uid| &sink.known[uid]);
    assert!(one.waiting.is_none() && Arc::ptr_eq(&one.traits, &other.traits));
}
