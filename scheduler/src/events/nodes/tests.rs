//! What lists and watches of nodes leave in the cache, and what of it is told.

use super::*;
use crate::framework::{Plugin, Points, Profile, Profiles, SharedPlugin};
use crate::pod_info::PodInfo;
use crate::queue::{Backoff, Queue};
use crate::views::Views;
use parking_lot::Mutex;
use serde_json::json;

/// Notes of which nodes it hears, and panics over one of the name `bad`.
#[derive(Debug, Default)]
struct Ears(Mutex<Vec<String>>);

impl Plugin for Ears {
    fn name(&self) -> &'static str {
        "Ears"
    }

    fn points(&self) -> Points {
        Points::NONE
    }

    fn can_help(&self, change: &WorldChange, _pod: &PodInfo) -> bool {
        let (WorldChange::NodeAdded(node)
        | WorldChange::NodeUpdated { new: node, .. }
        | WorldChange::NodeRemoved(node)) = change
        else {
            panic!("no other changes: {change:?}");
        };
        assert!(*node.name != *"bad", "as told");
        self.0
            .lock()
            .push(format!("{} {}", change.label(), node.name));
        false
    }
}

struct Heard {
    sink: Nodes,
    ears: Arc<Ears>,
    is_synced: watch::Receiver<bool>,
}

impl Heard {
    /// With a pod that waits for what the plugin hears.
    async fn begin() -> Self {
        let ears = Arc::new(Ears::default());
        let profile = Profile::new(
            "default-scheduler",
            vec![(Arc::clone(&ears) as SharedPlugin, 0)],
        );
        let profiles = Profiles::new([profile]);
        let world = World {
            views: Views::default(),
            queue: Arc::new(Queue::of(profiles.clone(), Backoff::default())),
            profiles,
        };
        let pod = json!({"metadata": {"name": "p", "uid": "p"}, "spec": {"containers": []}});
        let pod = PodInfo::new(Arc::new(serde_json::from_value(pod).unwrap()));
        world.queue.set(Arc::new(pod), Instant::now());
        let attempt = world.queue.next().await;
        let now = Instant::now();
        world.queue.unschedulable(&attempt, vec!["Ears"], now);
        let (synced, is_synced) = watch::channel(false);
        Self {
            sink: Nodes::new(world, synced),
            ears,
            is_synced,
        }
    }

    fn list(&mut self, nodes: &[&str]) -> String {
        self.sink.apply(Event::Init);
        for text in nodes {
            self.sink.apply(Event::InitApply(node(text)));
        }
        self.sink.apply(Event::InitDone);
        self.told()
    }

    fn apply(&mut self, event: Event<Node>) -> String {
        self.sink.apply(event);
        self.told()
    }

    fn told(&self) -> String {
        std::mem::take(&mut *self.ears.0.lock()).join(", ")
    }

    fn known(&self) -> String {
        let cache = self.sink.world.views.cache.lock();
        let names: Vec<&str> = cache.node_names().map(|name| &**name).collect();
        names.join(" ")
    }
}

/// `NAME UID VERSION [cordoned]`
fn node(text: &str) -> Node {
    let words: Vec<&str> = text.split_whitespace().collect();
    let node = json!({
        "metadata": {"name": words[0], "uid": words[1], "resourceVersion": words[2]},
        "spec": {"unschedulable": words.len() > 3},
    });
    serde_json::from_value(node).unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_changes_for_plugins_is_told_once() {
    let mut heard = Heard::begin().await;
    assert!(!*heard.is_synced.borrow());
    assert_eq!(heard.list(&["a 1 1", "b 2 1"]), "NodeAdd a, NodeAdd b");
    assert!(*heard.is_synced.borrow());
    assert_eq!(heard.list(&["a 1 2"]), "NodeDelete b");
    assert_eq!(heard.known(), "a");
    assert_eq!(heard.apply(Event::Apply(node("a 1 3"))), "");
    let cordoned = Event::Apply(node("a 1 4 cordoned"));
    assert_eq!(heard.apply(cordoned), "NodeUpdateNodeTaint a");
    assert_eq!(heard.list(&["a 3 5 cordoned"]), "NodeDelete a, NodeAdd a");
    let gone = || Event::Delete(node("a 3 6"));
    assert_eq!(heard.apply(gone()), "NodeDelete a");
    assert_eq!(heard.apply(gone()), "");
    assert_eq!(heard.known(), "");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_makes_something_panic_is_there_and_others_are_told() {
    let mut heard = Heard::begin().await;
    assert_eq!(heard.list(&["bad 1 1", "c 2 1"]), "NodeAdd c");
    assert_eq!(heard.known(), "bad c");
    assert_eq!(heard.list(&["d 3 1"]), "NodeAdd d, NodeDelete c");
    assert_eq!(heard.known(), "d");
}
