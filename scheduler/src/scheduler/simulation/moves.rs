//! What happens in the world, one thing a step.

use super::Simulation;
use super::api::node_of;
use super::made::{self, NODES};
use super::watch::name;
use coracle_client::informer::{Change, Event, Sink};
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use rand::RngExt;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Names of pods, so few that they are given again.
const NAMES: usize = 25;
/// Longer than a binding may go unconfirmed.
const SILENCE: Duration = Duration::from_secs(17 * 60);
/// At rest nothing happens for so long: longer than a pod backs off, and than an answer takes.
const QUIET: u32 = 35;
/// Shorter than what a pod waits at most, so that nobody is helped by that.
const REST_MAX: u32 = 280;

impl Simulation {
    pub fn begin(&mut self) {
        for place in 0..NODES {
            self.api.truth().set_node(made::node(place));
        }
    }

    pub async fn step(&mut self) {
        match self.random.random_range(0..100) {
            0..30 => self.make_pod(),
            30..40 => self.delete_pod(),
            40..50 => self.change_pod(),
            50..53 => self.put_pod(),
            53..58 => self.end_pod(),
            58..68 => self.change_node(),
            68 => self.be_silent().await,
            _ => {}
        }
        self.finish();
        self.show();
        if self.random.random_bool(0.3) {
            for _ in 0..self.random.random_range(0..20) {
                tokio::task::yield_now().await;
            }
        } else {
            let longest = [20, 500, 3000, 20_000][self.random.random_range(0..4)];
            let pause = self.random.random_range(0..longest);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }

    fn any_pod(&mut self, of: impl Fn(&Pod) -> bool) -> Option<Pod> {
        let truth = self.api.truth();
        let all: Vec<&Arc<Pod>> = truth.pods.values().filter(|pod| of(pod)).collect();
        let at = self.random.random_range(0..all.len().max(1));
        all.get(at).map(|pod| (***pod).clone())
    }

    fn make_pod(&mut self) {
        self.made += 1;
        let name = format!("p{}", self.random.random_range(0..NAMES));
        let mut truth = self.api.truth();
        if truth.pods.contains_key(&name) {
            return;
        }
        let mut pod = made::pod(&mut self.random, &name, &format!("{name}-{}", self.made));
        if self.random.random_bool(0.1) {
            let spec = pod.spec.get_or_insert_default();
            spec.scheduler_name = Some("other".to_owned());
            spec.node_name = Some(format!("n{}", self.random.random_range(0..NODES)));
        }
        truth.tell(&format!(
            "made {name} {}",
            serde_json::to_string(&pod.spec).unwrap()
        ));
        truth.set_pod(pod);
    }

    fn delete_pod(&mut self) {
        let Some(pod) = self.any_pod(|pod| pod.metadata.deletion_timestamp.is_none()) else {
            return;
        };
        let mut truth = self.api.truth();
        truth.tell(&format!("deleted {}", name(&pod)));
        truth.delete(&pod);
        // A namesake comes at once.
        if self.random.random_bool(0.3) && !truth.pods.contains_key(&name(&pod)) {
            self.made += 1;
            let uid = format!("{}-{}", name(&pod), self.made);
            let pod = made::pod(&mut self.random, &name(&pod), &uid);
            truth.set_pod(pod);
        }
    }

    /// Other labels, no gates any more, or fewer resources on its node.
    fn change_pod(&mut self) {
        let Some(mut pod) = self.any_pod(|_| true) else {
            return;
        };
        let is_placed = !node_of(&pod).is_empty();
        let spec = pod.spec.get_or_insert_default();
        if spec.scheduling_gates.take().is_none() && is_placed && self.random.random_bool(0.5) {
            let resources = made::from(json!({ "requests": { "cpu": "100m" } }));
            spec.containers[0].resources = Some(resources);
        } else {
            let app = ["a", "b", "c"][self.random.random_range(0..3)];
            let labels = pod.metadata.labels.get_or_insert_default();
            labels.insert("app".to_owned(), app.to_owned());
        }
        let mut truth = self.api.truth();
        truth.tell(&format!("changed {}", name(&pod)));
        truth.set_pod(pod);
    }

    /// Somebody else binds one of ours.
    fn put_pod(&mut self) {
        let is_open = |pod: &Pod| {
            let spec = pod.spec.as_ref();
            node_of(pod).is_empty() && spec.is_some_and(|spec| spec.scheduling_gates.is_none())
        };
        let Some(mut pod) = self.any_pod(is_open) else {
            return;
        };
        let node = format!("n{}", self.random.random_range(0..NODES));
        let mut truth = self.api.truth();
        truth.tell(&format!("put {} on {node}", name(&pod)));
        pod.spec.get_or_insert_default().node_name = Some(node);
        truth.set_pod(pod);
    }

    fn end_pod(&mut self) {
        let Some(mut pod) = self.any_pod(|pod| !node_of(pod).is_empty()) else {
            return;
        };
        let mut truth = self.api.truth();
        truth.tell(&format!("ended {}", name(&pod)));
        pod.status.get_or_insert_default().phase = Some("Succeeded".to_owned());
        truth.set_pod(pod);
    }

    fn change_node(&mut self) {
        let place = self.random.random_range(0..NODES);
        let what = self.random.random_range(0..7);
        let node = format!("n{place}");
        let mut truth = self.api.truth();
        let Some(known) = truth.nodes.get(&node) else {
            truth.tell(&format!("added {node}"));
            return truth.set_node(made::node(place));
        };
        let mut changed = Node::clone(known);
        truth.tell(&format!("node {node} change {what}"));
        let spec = changed.spec.get_or_insert_default();
        let labels = changed.metadata.labels.get_or_insert_default();
        match what {
            0 | 1 => return truth.remove_node(&node),
            2 => spec.unschedulable = Some(true),
            3 => {
                spec.taints = Some(vec![Taint {
                    key: "t".to_owned(),
                    effect: "NoSchedule".to_owned(),
                    ..Taint::default()
                }]);
            }
            4 => drop(labels.remove("disk")),
            5 => drop(labels.insert(made::ZONE.to_owned(), "z2".to_owned())),
            _ => {
                // As it was made, but for its uid.
                let made = made::node(place);
                (changed.spec, changed.metadata.labels) = (made.spec, made.metadata.labels);
            }
        }
        truth.set_node(changed);
    }

    /// The scheduler hears nothing, for so long that it gives up what it assumed.
    async fn be_silent(&mut self) {
        if self.random.random_bool(0.7) {
            return;
        }
        let before = self.assumed();
        {
            let mut truth = self.api.truth();
            truth.tell("silence");
            truth.is_silent = true;
            for uid in &before {
                truth.ours.remove(uid);
            }
        }
        tokio::time::sleep(SILENCE).await;
        let after = self.assumed();
        let mut truth = self.api.truth();
        truth.is_silent = false;
        for uid in before.iter().filter(|uid| !after.contains(*uid)) {
            truth.tell(&format!("expired {uid}, or not bound"));
        }
    }

    /// Nodes end the pods that are to end, and what is on no node any more is cleared away.
    fn finish(&mut self) {
        let mut truth = self.api.truth();
        let pods: Vec<Arc<Pod>> = truth.pods.values().cloned().collect();
        for pod in pods {
            let is_stray = !node_of(&pod).is_empty() && !truth.nodes.contains_key(node_of(&pod));
            let ends = pod.metadata.deletion_timestamp.is_some() || is_stray;
            if ends && (truth.is_calm || self.random.random_bool(0.3)) {
                truth.remove_pod(&name(pod.as_ref()));
            }
        }
    }

    fn show(&mut self) {
        let mut pods: Vec<Change<Pod>> = Vec::new();
        let mut nodes: Vec<Change<Node>> = Vec::new();
        let mut listed: Option<Vec<Arc<Pod>>> = None;
        let mut listed_nodes: Option<Vec<Arc<Node>>> = None;
        {
            let mut truth = self.api.truth();
            let (many, at) = (
                self.random.random_range(0..6),
                self.random.random_range(0..50),
            );
            match self.random.random_range(0..20) {
                0 => {
                    truth.tell("relist");
                    self.pods.list(&truth.pods, &truth.pod_log);
                    listed = Some(truth.pods.values().cloned().collect());
                }
                1 => {
                    self.nodes.list(&truth.nodes, &truth.node_log);
                    listed_nodes = Some(truth.nodes.values().cloned().collect());
                }
                2 => {
                    truth.tell("again");
                    pods.extend(self.pods.again(at));
                    nodes.extend(self.nodes.again(at));
                }
                3..10 => {}
                _ => {
                    for _ in 0..many {
                        pods.extend(self.pods.next(&truth.pod_log));
                        nodes.extend(self.nodes.next(&truth.node_log));
                    }
                }
            }
        }
        self.apply(&nodes, &pods);
        listed.iter().for_each(|pods| list(&mut self.sink, pods));
        let nodes = listed_nodes.iter();
        nodes.for_each(|nodes| list(&mut self.node_sink, nodes));
    }

    fn apply(&mut self, nodes: &[Change<Node>], pods: &[Change<Pod>]) {
        for change in nodes {
            self.node_sink.apply(event(change));
        }
        for change in pods {
            self.sink.apply(event(change));
        }
    }

    fn show_all(&mut self) {
        loop {
            let (pods, nodes) = {
                let truth = self.api.truth();
                if !self.pods.is_late(&truth.pod_log) && !self.nodes.is_late(&truth.node_log) {
                    return;
                }
                (
                    self.pods.next(&truth.pod_log),
                    self.nodes.next(&truth.node_log),
                )
            };
            self.apply(&nodes, &pods);
        }
    }

    /// Nothing goes wrong and nothing happens but what the scheduler does, until it does nothing.
    pub async fn come_to_rest(&mut self) -> Result<(), String> {
        {
            let mut truth = self.api.truth();
            truth.is_calm = true;
            truth.tell("calm");
        }
        let (mut quiet, mut known) = (0, 0);
        for _ in 0..REST_MAX {
            self.finish();
            self.show_all();
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.check()?;
            let depth = self.world.queue.depth();
            let events = self.api.truth().pod_log.len();
            let is_quiet = events == known && depth.active + depth.backoff + depth.in_flight == 0;
            (known, quiet) = (events, if is_quiet { quiet + 1 } else { 0 });
            if quiet == QUIET {
                return Ok(());
            }
        }
        let places = self.places()?;
        Err(format!("it does not come to rest: {places:?}"))
    }
}

/// What an informer would have made of it is made into what it came from.
fn event<K: Clone>(change: &Change<K>) -> Event<K> {
    match change {
        Change::Deleted(last) => Event::Delete(K::clone(last)),
        other => Event::Apply(K::clone(other.object())),
    }
}

fn list<K: Clone>(sink: &mut impl Sink<K>, objects: &[Arc<K>]) {
    sink.apply(Event::Init);
    for object in objects {
        sink.apply(Event::InitApply(K::clone(object)));
    }
    sink.apply(Event::InitDone);
}
