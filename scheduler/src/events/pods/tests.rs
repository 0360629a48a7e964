//! What lists and watches of pods leave in cache and queue.

use super::*;
use crate::framework::{Plugin, Points, Profile, Profiles, SharedPlugin, WorldChange};
use crate::plugins::priority_sort::PrioritySort;
use crate::pod_info::DERIVED;
use crate::queue::{Backoff, Queue};
use crate::selector::LabelSet;
use crate::views::Views;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};

fn sink() -> Pods {
    sink_with(Arc::new(PrioritySort))
}

fn sink_with(plugin: SharedPlugin) -> Pods {
    let profile = Profile::new("default-scheduler", vec![(plugin, 0)]);
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
    sink.apply(Event::Init);
    for text in pods {
        sink.apply(Event::InitApply(pod(text)));
    }
    sink.apply(Event::InitDone);
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
    sink.apply(Event::Delete(pod("a 2 6")));
    assert!(sink.shown().is_empty() && !sink.world.queue.is_known("2"));
}

#[tokio::test(start_paused = true)]
async fn only_a_pod_that_waits_is_kept_whole() {
    let mut sink = sink();
    sink.apply(Event::Apply(pod("a 1 1")));
    assert!(sink.known["1"].waiting.is_some());
    sink.apply(Event::Apply(pod("a 1 2 node")));
    sink.apply(Event::Apply(pod("b 2 3 node")));
    assert_eq!(sink.shown(), ["1 placed", "2 placed"]);
    let [one, other] = ["1", "2"].map(|uid| &sink.known[uid]);
    assert!(one.waiting.is_none() && Arc::ptr_eq(&one.traits, &other.traits));
}

#[tokio::test(start_paused = true)]
async fn what_a_list_shows_again_is_kept_once() {
    let mut sink = sink();
    list(&mut sink, &["a 1 1 node", "b 2 1"]);
    let before = sink.known.clone();
    list(&mut sink, &["a 1 1 node", "b 2 2"]);
    let is_same = |uid| Arc::ptr_eq(&before[uid], &sink.known[uid]);
    assert!(is_same("1") && !is_same("2"));
}

#[tokio::test(start_paused = true)]
async fn traits_are_worked_out_again_only_where_labels_or_spec_changed() {
    let mut sink = sink();
    let begun = DERIVED.get();
    let mut apply = |version: &str, generation: Option<i64>, app: &str| {
        let mut pod = pod(&format!("a 1 {version} node"));
        pod.metadata.generation = generation;
        let labels = [("app".to_owned(), app.to_owned())];
        pod.metadata.labels = Some(labels.into_iter().collect());
        sink.apply(Event::Apply(pod));
        assert_eq!(sink.known["1"].labels().label("app"), Some(app));
        DERIVED.get() - begun
    };
    assert_eq!(apply("1", Some(1), "web"), 1);
    assert_eq!(apply("2", Some(1), "web"), 1, "its status changed");
    assert_eq!(apply("3", Some(1), "api"), 2, "its labels did");
    assert_eq!(apply("4", Some(2), "api"), 3, "its spec did");
    assert_eq!(apply("5", Some(2), "api"), 3);
    assert_eq!(apply("6", None, "api"), 4, "nobody knows");
    assert_eq!(apply("7", None, "api"), 5);
}

/// Keeps pods of the name `waits` out, and panics over those of the name `bad` while it is told to.
#[derive(Debug, Default)]
struct Touchy(AtomicBool);

impl Touchy {
    fn look_at(&self, pod: &PodInfo) {
        let is_bad = self.0.load(Ordering::Relaxed) && pod.key.name == "bad";
        assert!(!is_bad, "as told");
    }
}

impl Plugin for Touchy {
    fn name(&self) -> &'static str {
        "Touchy"
    }

    fn points(&self) -> Points {
        Points::NONE
    }

    fn pre_enqueue(&self, pod: &PodInfo) -> bool {
        self.look_at(pod);
        pod.key.name != "waits"
    }

    fn can_help(&self, change: &WorldChange, _pod: &PodInfo) -> bool {
        if let WorldChange::PodGone(pod) = change {
            self.look_at(pod);
        }
        false
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_makes_something_panic_is_missed_until_the_next_list_and_no_other_is() {
    let touchy = Arc::new(Touchy::default());
    let mut sink = sink_with(Arc::clone(&touchy) as SharedPlugin);
    let panics = |does| touchy.0.store(does, Ordering::Relaxed);
    panics(true);
    list(&mut sink, &["bad 1 1", "waits 2 1"]);
    assert!(*sink.synced.borrow());
    assert_eq!(sink.shown(), ["2 queued"]);
    panics(false);
    list(&mut sink, &["bad 1 1", "waits 2 1"]);
    assert_eq!(sink.shown(), ["1 queued", "2 queued"]);

    list(&mut sink, &["bad 1 2 node", "waits 2 1"]);
    let others: Vec<_> = (3..9).map(|uid| format!("o {uid} 1 node")).collect();
    others
        .iter()
        .for_each(|other| sink.apply(Event::Apply(pod(other))));
    panics(true);
    list(&mut sink, &["waits 2 1"]);
    assert_eq!(sink.shown(), ["1 nowhere", "2 queued"]);
    sink.apply(Event::Delete(pod("bad 1 3 node")));
    panics(false);
    list(&mut sink, &["waits 2 1"]);
    assert_eq!(sink.shown(), ["2 queued"]);
}
