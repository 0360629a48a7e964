//! Decides what one pass does for one DaemonSet: first one pod for each node, then the rollout.
//! Pure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_client::clock::Instant;
use coracle_client::events::EventType;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;

use super::backoff::{Backoff, Place};
use super::placement::{self, GENERATION_LABEL, Nodes, Placement};
use super::rollout;
use super::spec::Spec;
use crate::history::HASH_LABEL;
use crate::pods;

/// Bounds one pass in creations and in deletions; the rest follows when these are seen. Upstream's
/// burst: more at once is hard on registries.
pub(super) const PODS_PER_PASS_MAX: usize = 250;

/// The set's pods, by the node that they run on or are tied to.
pub(super) type ByNode = BTreeMap<String, Vec<Arc<Pod>>>;

/// What the caches show.
#[derive(Debug)]
pub(super) struct Observed<'a> {
    pub set: &'a DaemonSet,
    pub spec: &'a Spec<'a>,
    /// Of the set's present revision.
    pub hash: &'a str,
    pub nodes: &'a Nodes,
    pub pods: &'a ByNode,
    pub now: Timestamp,
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    /// A pod for each of these nodes.
    pub create: Vec<String>,
    pub delete: Vec<Arc<Pod>>,
    pub tell: Vec<(EventType, &'static str, String)>,
    /// When a failed pod may be replaced.
    pub again: Option<Duration>,
}

/// The pods of a set, without those that only wait for somebody else to remove them.
pub(super) fn by_node(owned: &[Arc<Pod>]) -> ByNode {
    let mut by_node = ByNode::new();
    for pod in owned {
        if pods::is_finished(pod) && pods::is_deleting(pod) {
            continue;
        }
        if let Some(node) = placement::target(pod) {
            by_node
                .entry(node.to_owned())
                .or_default()
                .push(pod.clone());
        }
    }
    for pods in by_node.values_mut() {
        pods.sort_by(|a, b| by_seniority(a, b));
    }
    by_node
}

/// Bound pods first, then the oldest, then by name.
fn by_seniority(a: &Pod, b: &Pod) -> std::cmp::Ordering {
    let unbound = |pod: &Pod| pods::node_name(pod).is_empty();
    let created = |pod: &Pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let by_binding = unbound(a).cmp(&unbound(b));
    let by_age = by_binding.then_with(|| created(a).cmp(&created(b)));
    by_age.then_with(|| a.metadata.name.cmp(&b.metadata.name))
}

impl Observed<'_> {
    /// Made from the present template.
    pub(super) fn is_updated(&self, pod: &Pod) -> bool {
        let generation = self.spec.template_generation.as_deref();
        self.has_hash(pod) || (generation.is_some() && label(pod, GENERATION_LABEL) == generation)
    }

    fn has_hash(&self, pod: &Pod) -> bool {
        label(pod, HASH_LABEL) == Some(self.hash)
    }

    pub(super) fn is_available(&self, pod: &Pod) -> bool {
        pods::is_available(pod, self.spec.min_ready_seconds, self.now)
    }

    pub(super) fn placement(&self, node: &str) -> Placement {
        self.nodes.get(node).copied().unwrap_or_default()
    }
}

fn label<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    let labels = pod.metadata.labels.as_ref()?;
    labels.get(key).map(String::as_str)
}

pub(super) fn plan(observed: &Observed<'_>, backoff: &mut Backoff, now: Instant) -> Plan {
    let mut plan = Plan::default();
    for (node, placement) in observed.nodes {
        keep_node(observed, node, *placement, &mut plan, backoff, now);
    }
    // Nobody else removes a pod that waits for a node which is gone.
    for (_, pods) in observed
        .pods
        .iter()
        .filter(|(node, _)| !observed.nodes.contains_key(*node))
    {
        let lost = |pod: &&Arc<Pod>| pods::node_name(pod).is_empty() && !pods::is_deleting(pod);
        plan.delete.extend(pods.iter().filter(lost).cloned());
    }
    if plan.create.is_empty() && plan.delete.is_empty() {
        rollout::advance(observed, &mut plan);
    }
    plan.create.truncate(PODS_PER_PASS_MAX);
    plan.delete.truncate(PODS_PER_PASS_MAX);
    plan
}

/// One pod where one belongs, none where none does.
fn keep_node(
    observed: &Observed<'_>,
    node: &str,
    placement: Placement,
    plan: &mut Plan,
    backoff: &mut Backoff,
    now: Instant,
) {
    let Some(pods) = observed.pods.get(node) else {
        if placement.run {
            plan.create.push(node.to_owned());
        }
        return;
    };
    let living = pods.iter().filter(|pod| !pods::is_deleting(pod));
    if !placement.stay {
        plan.delete.extend(living.cloned());
        return;
    }
    let (mut running, mut waits) = (Vec::new(), false);
    for pod in living {
        if pods::is_finished(pod) {
            waits |= !replace_finished(observed, node, pod, plan, backoff, now);
        } else {
            running.push(pod);
        }
    }
    if !observed.spec.allows_surge() {
        plan.delete.extend(running.into_iter().skip(1).cloned());
    } else if running.is_empty() && placement.run && !waits {
        // An older pod that is still terminating is not waited for; one that failed is, or each
        // pass would put another beside it.
        plan.create.push(node.to_owned());
    } else if running.len() > 1 {
        keep_two(observed, &running, plan);
    }
}

/// `false` when the pod is left alone for a while, or for the next pass.
fn replace_finished(
    observed: &Observed<'_>,
    node: &str,
    pod: &Arc<Pod>,
    plan: &mut Plan,
    backoff: &mut Backoff,
    now: Instant,
) -> bool {
    if plan.delete.len() >= PODS_PER_PASS_MAX {
        return false; // It would be told of, and not deleted.
    }
    let meta = &pod.metadata;
    let (namespace, name) = (
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default(),
    );
    if pods::phase(pod) == "Succeeded" {
        let message = format!(
            "Found succeeded daemon pod {namespace}/{name} on node {node}, will try to delete it"
        );
        plan.tell
            .push((EventType::Normal, "SucceededDaemonPod", message));
        plan.delete.push(pod.clone());
        return true;
    }
    let status = observed.set.status.as_ref();
    let place = Place {
        uid: observed.set.metadata.uid.clone().unwrap_or_default(),
        generation: status
            .and_then(|status| status.observed_generation)
            .unwrap_or(0),
        node: node.to_owned(),
    };
    if let Some(wait) = backoff.ask(place, now) {
        plan.again = Some(plan.again.map_or(wait, |other| other.min(wait)));
        return false;
    }
    let message =
        format!("Found failed daemon pod {namespace}/{name} on node {node}, will try to kill it");
    plan.tell
        .push((EventType::Warning, "FailedDaemonPod", message));
    plan.delete.push(pod.clone());
    true
}

/// With surge the oldest new and the oldest old pod may both be there, while the old one serves
/// and the new one does not yet.
fn keep_two(observed: &Observed<'_>, running: &[&Arc<Pod>], plan: &mut Plan) {
    let (mut new, mut old) = (None, None);
    for pod in running {
        let slot = if observed.has_hash(pod) {
            &mut new
        } else {
            &mut old
        };
        if slot.is_none() {
            *slot = Some(*pod);
        } else {
            plan.delete.push(Arc::clone(pod));
        }
    }
    if let (Some(new), Some(old)) = (new, old)
        && (!pods::is_ready(old) || observed.is_available(new))
    {
        plan.delete.push(Arc::clone(old));
    }
}
