//! Who meets whose required terms, counted over domains.

use super::terms::{self, meets_all};
use crate::node_facts::{ByValue, KeyPlace};
use crate::node_info::NodeInfo;
use crate::pod_info::{AffinityTerm, Memo, PodInfo, Traits};
use crate::selector::Labels;
use crate::views::Namespaces;
use std::sync::Arc;

/// Counts by topology key, then by value; none is zero. A handful of keys at most.
#[derive(Clone, Debug, Default)]
struct Tally(Vec<Domains>);

#[derive(Clone, Debug)]
struct Domains {
    key: Arc<str>,
    counts: ByValue<i64>,
    place: KeyPlace,
}

impl Tally {
    fn add(&mut self, node: &NodeInfo, key: &Arc<str>, change: i64) {
        let place = self.0.iter().position(|known| known.key == *key);
        let place = place.unwrap_or_else(|| {
            self.0.push(Domains {
                key: Arc::clone(key),
                counts: ByValue::default(),
                place: KeyPlace::default(),
            });
            self.0.len() - 1
        });
        let Domains { counts, place, .. } = &mut self.0[place];
        let Some(value) = node.facts.labels.value(key, place) else {
            return;
        };
        match counts.get_mut(&**value) {
            Some(count) => {
                *count += change;
                if *count == 0 {
                    counts.remove(&**value);
                }
            }
            None => drop(counts.insert(Arc::clone(value), change)),
        }
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|domains| domains.counts.is_empty())
    }

    fn has(&self, key: &str, value: &str) -> bool {
        let known = self.0.iter().find(|known| *known.key == *key);
        let count = known.and_then(|domains| domains.counts.get(value));
        count.is_some_and(|count| *count > 0)
    }

    fn has_any(&self, node: &NodeInfo) -> bool {
        self.0.iter().any(|Domains { key, counts, .. }| {
            let value = node.label(key).filter(|_| !counts.is_empty());
            let count = value.and_then(|value| counts.get(value));
            count.is_some_and(|count| *count > 0)
        })
    }
}

/// The topology keys of terms that are met between the pod and others alike, for each tally.
#[derive(Debug)]
struct Met {
    refusing: Vec<Arc<str>>,
    wanted: Vec<Arc<str>>,
    unwanted: Vec<Arc<str>>,
}

#[derive(Clone, Debug)]
pub struct Meetings {
    near: Arc<[AffinityTerm]>,
    far: Arc<[AffinityTerm]>,
    namespace_labels: Option<Arc<Labels>>,
    /// Pods that meet all terms of affinity, once for each term.
    wanted: Tally,
    /// Pods that meet a term of anti-affinity.
    unwanted: Tally,
    /// Pods with a term of anti-affinity that the pod meets.
    refusing: Tally,
}

impl Meetings {
    pub fn new(
        pod: &PodInfo,
        namespace_labels: Option<Labels>,
        namespaces: &Namespaces,
        nodes: &[NodeInfo],
    ) -> Self {
        let own = pod.terms();
        let shared = |terms| terms::shared(terms, namespaces);
        let mut meetings = Self {
            near: own.map_or_else(Arc::default, |own| shared(&own.affinity)),
            far: own.map_or_else(Arc::default, |own| shared(&own.anti_affinity)),
            namespace_labels: namespace_labels.map(Arc::new),
            wanted: Tally::default(),
            unwanted: Tally::default(),
            refusing: Tally::default(),
        };
        let looks_at_all = !meetings.near.is_empty() || !meetings.far.is_empty();
        let mut met = Memo::default();
        for node in nodes {
            for alike in &node.alike {
                if looks_at_all || !alike.traits.anti_affinity().is_empty() {
                    let met = met.get(&alike.traits, |other| meetings.met(pod, other));
                    meetings.count(met, node, alike.pods);
                }
            }
        }
        meetings
    }

    /// No pod there and no term of the pod's says anything.
    pub fn is_indifferent(&self) -> bool {
        self.near.is_empty() && self.far.is_empty() && self.refusing.is_empty()
    }

    /// Of pods with such traits.
    fn met(&self, pod: &PodInfo, other: &Traits) -> Met {
        let keys = |terms: &mut dyn Iterator<Item = &AffinityTerm>| {
            terms.map(|term| Arc::clone(&term.topology_key)).collect()
        };
        let labels = self.namespace_labels.as_deref();
        let theirs = other.anti_affinity().iter();
        let near = meets_all(&self.near, other).then_some(&self.near);
        let far = self.far.iter().filter(|term| term.matches(other, None));
        Met {
            refusing: keys(&mut theirs.filter(|term| term.matches(&pod.traits, labels))),
            wanted: keys(&mut near.iter().flat_map(|near| near.iter())),
            unwanted: keys(&mut far.into_iter()),
        }
    }

    fn count(&mut self, met: &Met, node: &NodeInfo, change: i64) {
        let tallies = [
            (&met.refusing, &mut self.refusing),
            (&met.wanted, &mut self.wanted),
            (&met.unwanted, &mut self.unwanted),
        ];
        for (keys, tally) in tallies {
            for key in keys {
                tally.add(node, key, change);
            }
        }
    }

    /// `other` came to the node (1) or left it (-1).
    pub fn add(&mut self, pod: &PodInfo, other: &PodInfo, node: &NodeInfo, change: i64) {
        let met = self.met(pod, &other.traits);
        self.count(&met, node, change);
    }

    pub fn allow_near(&self, pod: &PodInfo, node: &NodeInfo) -> bool {
        let mut all_there = true;
        for term in self.near.iter() {
            let Some(value) = node.label(&term.topology_key) else {
                return false;
            };
            all_there &= self.wanted.has(&term.topology_key, value);
        }
        // The first of pods that want to be with each other may go anywhere.
        all_there || self.wanted.is_empty() && meets_all(&self.near, &pod.traits)
    }

    pub fn allow_far(&self, node: &NodeInfo) -> bool {
        !self.unwanted.has_any(node)
    }

    pub fn are_refused(&self, node: &NodeInfo) -> bool {
        self.refusing.has_any(node)
    }
}
