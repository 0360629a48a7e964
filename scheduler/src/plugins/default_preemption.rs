//! PostFilter: makes room for a pod that fits nowhere by the end of pods of lower priority.
//!
//! Decides which pods on which node; the loop ends them. Pure over the snapshot: every node is
//! tried on a copy of itself, and on one copy of the filters' state.

mod budgets; // Whose disruption budget has nothing left.
mod choice; // The node with the least harm.
mod victims; // Which pods of a node must go.

use crate::cycle::Diagnosis;
use crate::framework::{
    Nomination, Plugin, Points, Preemption, Reason, Remedy, Unfit, WorldChange,
};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use std::sync::Arc;
use victims::Victims;

/// Of the nodes that may help, this part in percent is tried, and no fewer than so many.
#[derive(Clone, Copy, Debug)]
pub struct Args {
    pub candidates_percent_min: usize,
    pub candidates_min: usize,
}

/// Upstream's.
impl Default for Args {
    fn default() -> Self {
        Self {
            candidates_percent_min: 10,
            candidates_min: 100,
        }
    }
}

const NOT_HELPFUL: &str = "Preemption is not helpful for scheduling";
/// The reason of the condition `DisruptionTarget` of pods that preemption ends.
pub const PREEMPTED: &str = "PreemptionByScheduler";

#[derive(Debug, Default)]
pub struct DefaultPreemption {
    args: Args,
}

impl DefaultPreemption {
    pub fn new(args: Args) -> Self {
        Self { args }
    }
}

/// A node that would have room, and at what price.
#[derive(Debug)]
struct Candidate<'a> {
    node: &'a NodeInfo,
    victims: Victims,
}

impl Plugin for DefaultPreemption {
    fn name(&self) -> &'static str {
        "DefaultPreemption"
    }

    fn points(&self) -> Points {
        Points {
            post_filter: true,
            ..Points::NONE
        }
    }

    fn post_filter(&self, unfit: &Unfit<'_>) -> Remedy {
        if let Some(why) = ineligible(unfit) {
            return Remedy::none(format!("preemption: {why}"), Nomination::Keep);
        }
        let mut refusals = Diagnosis::new(unfit.filters.world.nodes.len());
        let candidates = candidates(unfit, self.args, &mut refusals);
        let Some(best) = choice::best(candidates) else {
            let message = format!("preemption: {}", refusals.message(unfit.filters.pod));
            return Remedy::none(message, Nomination::Clear);
        };
        let node = Arc::clone(&best.node.name);
        Remedy {
            message: String::new(),
            nomination: Nomination::Node(Arc::clone(&node)),
            preemption: Some(Preemption {
                node,
                victims: best.victims.pods,
            }),
            ..Remedy::default()
        }
    }

    /// Never: whoever refused the node knows when it is worth another look.
    fn can_help(&self, _change: &WorldChange, _pod: &PodInfo) -> bool {
        false
    }
}

/// Why the pod may not end others now.
fn ineligible(unfit: &Unfit<'_>) -> Option<&'static str> {
    let (world, pod) = (unfit.filters.world, unfit.filters.pod);
    if !pod.may_preempt() {
        return Some("not eligible due to preemptionPolicy=Never.");
    }
    let nominated = world.nominated.node_of(&pod.uid)?;
    let place = world.place_of(nominated)?;
    // A node on which the end of pods helps no more is not waited for.
    unfit.helpful.binary_search(&place).ok()?;
    let mut on_node = world.nodes[place].pods.iter();
    on_node
        .any(|other| other.priority < pod.priority && is_being_preempted(other))
        .then_some("not eligible due to a terminating pod on the nominated node.")
}

fn is_being_preempted(pod: &PodInfo) -> bool {
    pod.is_deleting
        && pod.disruption.as_ref().is_some_and(|condition| {
            condition.status == "True" && condition.reason.as_deref() == Some(PREEMPTED)
        })
}

/// How many candidates are enough to choose from.
fn enough(args: Args, nodes: usize) -> usize {
    (nodes * args.candidates_percent_min / 100)
        .max(args.candidates_min)
        .min(nodes)
}

/// Those that violate no budget first; `refusals` gets why the other nodes are none.
fn candidates<'a>(unfit: &Unfit<'a>, args: Args, refusals: &mut Diagnosis) -> Vec<Candidate<'a>> {
    let (filters, helpful) = (unfit.filters, unfit.helpful);
    let (mut harmless, mut violating) = (Vec::new(), Vec::new());
    let enough = enough(args, helpful.len());
    // One for all nodes: each try undoes what it did.
    let mut state = unfit.state.clone();
    for turn in 0..helpful.len() {
        let place = helpful[(unfit.offset + turn) % helpful.len()];
        let node = &filters.world.nodes[place];
        match victims::select(filters, &mut state, node) {
            Err(refusal) => refusals.refuse(place, refusal),
            Ok(victims) if victims.violations == 0 => harmless.push(Candidate { node, victims }),
            Ok(victims) => violating.push(Candidate { node, victims }),
        }
        if !harmless.is_empty() && harmless.len() + violating.len() >= enough {
            break;
        }
    }
    let absent = filters.world.nodes.len() - helpful.len();
    refusals.count(absent, Reason::Text(NOT_HELPFUL));
    harmless.append(&mut violating);
    harmless
}

#[cfg(test)]
mod tests;
