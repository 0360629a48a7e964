//! What must hold after every step, and at rest.

use super::Simulation;
use super::api::Truth;
use super::made::capacity;
use super::{BINDINGS, Rotation, Snapshot};
use crate::cycle::{self, Outcome};
use crate::node_facts::NodeFacts;
use crate::plugins::node_selector::required_matches;
use crate::plugins::taint_toleration::tolerates_hard_taints;
use crate::pod_info::PodInfo;
use k8s_openapi::api::core::v1::{Node, Pod};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn info(pod: &Arc<Pod>) -> PodInfo {
    PodInfo::new(Arc::clone(pod))
}

/// One of ours that should get a node.
fn waits(pod: &PodInfo) -> bool {
    pod.node_name().is_empty()
        && !pod.is_terminal
        && !pod.is_deleting
        && pod.scheduler_name() == "default-scheduler"
}

fn is_gated(pod: &PodInfo) -> bool {
    !pod.gates().is_empty()
}

impl Simulation {
    /// Uids of the assumed pods.
    pub fn assumed(&self) -> BTreeSet<String> {
        let cache = self.world.views.cache.lock();
        let pods = cache.audit().unwrap_or_default();
        let assumed = pods.iter().filter_map(|pod| pod.strip_suffix(" assumed"));
        let uids = assumed.filter_map(|pod| pod.split_once(' '));
        uids.map(|(uid, _)| uid.to_owned()).collect()
    }

    /// The places of the pods in the queue, which are as they were shown.
    pub fn places(&self) -> Result<BTreeMap<String, &'static str>, String> {
        let mut places = BTreeMap::new();
        for (pod, place) in self.world.queue.places()? {
            let shown = self.pods.store.get(&pod.key.name);
            let version = shown.and_then(|shown| shown.metadata.resource_version.as_deref());
            if version.is_some_and(|version| *version != *pod.resource_version) {
                return Err(format!("{} is {place} as it was once", pod.uid));
            }
            places.insert(pod.uid.clone(), place);
        }
        Ok(places)
    }

    pub fn check(&self) -> Result<(), String> {
        if let Some(wrong) = self.api.truth().wrong.clone() {
            return Err(wrong);
        }
        let places = self.places()?;
        let on_nodes = self.world.views.cache.lock().audit()?;
        let assumed = self.assumed();
        let shown: Vec<PodInfo> = self.pods.store.values().map(info).collect();
        let waiting: BTreeSet<&str> = shown
            .iter()
            .filter(|pod| waits(pod))
            .map(|pod| pod.uid.as_str())
            .collect();
        for uid in &waiting {
            match (places.get(*uid), assumed.contains(*uid)) {
                (None, false) => return Err(format!("{uid} is forgotten")),
                (Some(place), true) if *place != "in flight" => {
                    return Err(format!("{uid} is assumed, and {place}"));
                }
                _ => {}
            }
        }
        if let Some(uid) = places.keys().find(|uid| !waiting.contains(uid.as_str())) {
            return Err(format!("{uid} waits for nothing: {}", places[uid]));
        }
        let confirmed: BTreeSet<String> = on_nodes
            .into_iter()
            .filter(|pod| !pod.ends_with(" assumed"))
            .collect();
        let placed = shown
            .iter()
            .filter(|pod| !pod.node_name().is_empty() && !pod.is_terminal);
        let placed: BTreeSet<String> = placed
            .map(|pod| format!("{} on {}", pod.uid, pod.node_name()))
            .collect();
        if let Some(odd) = confirmed.symmetric_difference(&placed).next() {
            return Err(format!("{odd}: the cache has not what was shown, or more"));
        }
        Ok(())
    }

    /// Nothing is late: what was shown is true.
    pub fn check_at_rest(&self) -> Result<(), String> {
        let truth = self.api.truth();
        let assumed = self.assumed();
        if !assumed.is_empty() {
            return Err(format!("still assumed: {assumed:?}"));
        }
        let promises = self.world.views.cache.lock().promises();
        if !promises.is_empty() {
            return Err(format!("still promised: {promises:?}"));
        }
        let free = self.scheduler.places.free();
        if free[0] != BINDINGS {
            return Err(format!("only {free:?} places of bindings are free"));
        }
        let mut snapshot = Snapshot::default();
        self.world.views.cache.lock().update(&mut snapshot);
        let (shown, real) = (&snapshot.nodes, &truth.nodes);
        if !shown
            .iter()
            .map(|node| &*node.name)
            .eq(real.keys().map(String::as_str))
        {
            return Err("the cache has other nodes than there are".to_owned());
        }
        let waiting = truth.pods.values().map(info);
        for pod in waiting.filter(|pod| waits(pod) && !is_gated(pod)) {
            self.check_fits_nowhere(&truth, &snapshot, &pod)?;
        }
        Ok(())
    }

    /// By the scheduler's own cycle, and where that is simple also by what is true.
    fn check_fits_nowhere(
        &self,
        truth: &Truth,
        snapshot: &Snapshot,
        pod: &PodInfo,
    ) -> Result<(), String> {
        let profile = &self.scheduler.lanes[0].profile;
        match cycle::run(profile, snapshot, pod, &mut Rotation::default(), |_| 0) {
            Outcome::Node(node) => return Err(format!("{} fits {node}, and waits", pod.key)),
            Outcome::NoFit(diagnosis) => {
                if let Some(preemption) = &diagnosis.remedy().preemption {
                    let node = &preemption.node;
                    return Err(format!("{} could make room on {node}, and waits", pod.key));
                }
            }
            Outcome::Failed(why) => return Err(format!("{}: {why}", pod.key)),
        }
        let is_simple = |pod: &PodInfo| pod.terms().is_none() && pod.spread.is_empty();
        let mut others = truth
            .pods
            .values()
            .map(info)
            .filter(|other| !other.is_terminal);
        if !is_simple(pod) || !others.all(|other| other.terms().is_none()) {
            return Ok(());
        }
        match truth.nodes.values().find(|node| has_room(truth, node, pod)) {
            Some(node) => Err(format!("{} has room on {:?}", pod.key, node.metadata.name)),
            None => Ok(()),
        }
    }
}

fn has_room(truth: &Truth, node: &Arc<Node>, pod: &PodInfo) -> bool {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let facts = NodeFacts::of(node);
    let on_node = truth.on_node(name);
    let (cpu, places) = capacity(name);
    let used: i64 = on_node.iter().map(|other| other.requests.milli_cpu).sum();
    let ports: usize = on_node.iter().map(|other| other.host_ports.len()).sum();
    debug_assert!(on_node.iter().all(|other| other.node_name() == name));
    used + pod.requests.milli_cpu <= cpu
        && on_node.len() < places
        && (pod.host_ports.is_empty() || ports == 0)
        && required_matches(pod, &facts)
        && tolerates_hard_taints(pod, &facts.taints)
        && (!facts.is_unschedulable || !pod.tolerations().is_empty())
}
