//! Which pods of one node must go: all of lower priority go, and each that need not is let back.

use super::budgets;
use crate::framework::{CycleState, Filters, Reason, Refusal, Verdict};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use jiff::Timestamp;
use std::cmp::Reverse;
use std::sync::Arc;

const NO_VICTIMS: &str = "No preemption victims found for incoming pod";
const PLUGIN: &str = "DefaultPreemption";

#[derive(Debug)]
pub struct Victims {
    /// At least one, the most important first.
    pub pods: Vec<Arc<PodInfo>>,
    /// How many of them have a disruption budget that does not allow it.
    pub violations: usize,
}

/// When the pod began to run; one that has not yet is the youngest.
pub fn started(pod: &PodInfo) -> (bool, Option<Timestamp>) {
    (pod.started.is_none(), pod.started)
}

/// Smaller is more important: of higher priority, then running for longer.
fn importance(pod: &Arc<PodInfo>) -> impl Ord + use<> {
    (Reverse(pod.priority), started(pod))
}

/// A node and the filters' state as they would be.
struct DryRun<'a, 's> {
    filters: Filters<'a>,
    node: NodeInfo,
    state: &'s mut CycleState,
}

impl DryRun<'_, '_> {
    fn remove(&mut self, pod: &PodInfo) {
        self.node.remove_pod(&pod.uid);
        self.filters.remove_pod(pod, &self.node, self.state);
    }

    fn add(&mut self, pod: &Arc<PodInfo>) {
        self.node.add_pod(Arc::clone(pod));
        self.filters.add_pod(pod, &self.node, self.state);
    }

    fn refusal(&mut self) -> Option<Refusal> {
        self.filters.refusal_with_nominated(&self.node, self.state)
    }

    /// The state is what it was before.
    fn put_back(&mut self, gone: &[Arc<PodInfo>]) {
        for pod in gone {
            self.add(pod);
        }
    }

    /// Lets the pods back that need not go; gives back the others.
    fn spare(&mut self, pods: Vec<Arc<PodInfo>>) -> Vec<Arc<PodInfo>> {
        let mut victims = Vec::new();
        for pod in pods {
            self.add(&pod);
            if self.refusal().is_some() {
                self.remove(&pod);
                victims.push(pod);
            }
        }
        victims
    }
}

/// `state` is of the node as it is, before and after.
pub fn select(
    filters: Filters<'_>,
    state: &mut CycleState,
    node: &NodeInfo,
) -> Result<Victims, Refusal> {
    let lower = |other: &&Arc<PodInfo>| other.priority < filters.pod.priority;
    let mut potential: Vec<_> = node.pods.iter().filter(lower).cloned().collect();
    if potential.is_empty() {
        return Err(refused(Reason::Text(NO_VICTIMS)));
    }
    let mut dry_run = DryRun {
        filters,
        node: node.clone(),
        state,
    };
    for pod in &potential {
        dry_run.remove(pod);
    }
    if let Some(refusal) = dry_run.refusal() {
        dry_run.put_back(&potential);
        return Err(refusal);
    }
    potential.sort_by_cached_key(importance);
    let (violating, others) = budgets::split(potential, &filters.world.budgets);
    let mut victims = dry_run.spare(violating);
    let violations = victims.len();
    victims.extend(dry_run.spare(others));
    dry_run.put_back(&victims);
    if victims.is_empty() {
        let text = format!("expected at least one victim pod on node \"{}\"", node.name);
        return Err(refused(Reason::Told(text.into())));
    }
    victims.sort_by_cached_key(importance);
    Ok(Victims {
        pods: victims,
        violations,
    })
}

fn refused(reason: Reason) -> Refusal {
    Refusal {
        plugin: PLUGIN,
        verdict: Verdict::Unresolvable(reason),
    }
}
