//! Filter: rejects a node with too little left of what the pod requests.
//! Score: prefers nodes by how much of their resources is given away: least, most, or by a curve.

use super::node_resources::uses;
use crate::cache::Snapshot;
use crate::framework::{Lacking, Plugin, Points, Reason, Slot, Verdict, WorldChange};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use crate::resources::Resources;
use k8s_openapi::api::core::v1::Node;

mod strategy; // How what is given away makes a score.

pub use strategy::{Point, Scoring, Strategy};

#[derive(Debug, Default)]
pub struct NodeResourcesFit {
    args: Args,
}

#[derive(Clone, Debug, Default)]
pub struct Args {
    /// Extended resources that others see to.
    pub ignored_resources: Vec<String>,
    /// All of these groups: what is before the slash of their names.
    pub ignored_resource_groups: Vec<String>,
    pub scoring: Scoring,
}

impl Args {
    fn ignores(&self, name: &str) -> bool {
        let Some((group, _)) = name.split_once('/') else {
            return false;
        };
        let is_extended = !group.ends_with("kubernetes.io");
        is_extended
            && (self.ignored_resources.iter().any(|one| one == name)
                || self.ignored_resource_groups.iter().any(|one| one == group))
    }
}

/// One of the amounts that every node has.
type Amount = fn(&Resources) -> i64;

const AMOUNTS: [(u32, Amount); 3] = [
    (Lacking::CPU, |all| all.milli_cpu),
    (Lacking::MEMORY, |all| all.memory),
    (Lacking::EPHEMERAL_STORAGE, |all| all.ephemeral_storage),
];

/// What a node has too little of, and whether it had when it was empty.
fn lacking(args: &Args, asked: &Resources, has: &Resources, used: &Resources) -> (Lacking, bool) {
    let (mut lacking, mut is_too_small) = (Lacking::default(), false);
    let mut check = |which, asked: i64, has: i64, used: i64| {
        if asked > 0 && asked > has - used {
            lacking.add(which);
            is_too_small |= asked > has;
        }
    };
    for (which, amount) in AMOUNTS {
        check(which, amount(asked), amount(has), amount(used));
    }
    for (which, (name, amount)) in (Lacking::SCALARS..).zip(&asked.scalars) {
        if !args.ignores(name) {
            check(which, *amount, has.scalar(name), used.scalar(name));
        }
    }
    (lacking, is_too_small)
}

/// Whether there is more of something that is asked for.
fn is_more(asked: &Resources, old: &Resources, new: &Resources) -> bool {
    let mut amounts = AMOUNTS.iter().map(|(_, amount)| amount);
    amounts.any(|amount| amount(asked) > 0 && amount(new) > amount(old))
        || asked
            .scalars
            .iter()
            .any(|(name, amount)| *amount > 0 && new.scalar(name) > old.scalar(name))
}

fn allocatable(node: &Node) -> Resources {
    let status = node.status.as_ref();
    let allocatable = status.and_then(|status| status.allocatable.as_ref());
    allocatable
        .map(Resources::from_quantities)
        .unwrap_or_default()
}

impl NodeResourcesFit {
    pub fn new(args: Args) -> Self {
        Self { args }
    }

    /// A node that is too small even when empty helps nobody.
    fn node_can_help(&self, change: &WorldChange, asked: &Resources) -> bool {
        let Some(node) = change.node() else {
            return false;
        };
        let has = allocatable(node);
        let (lacking, _) = lacking(&self.args, asked, &has, &Resources::default());
        if !lacking.is_empty() || has.pods < 1 {
            return false;
        }
        let WorldChange::NodeUpdated { old, .. } = change else {
            return true;
        };
        let had = allocatable(old);
        has.pods > had.pods || is_more(asked, &had, &has)
    }
}

impl Plugin for NodeResourcesFit {
    fn name(&self) -> &'static str {
        "NodeResourcesFit"
    }

    fn points(&self) -> Points {
        Points::FILTER_AND_SCORE
    }

    fn filter(&self, pod: &PodInfo, node: &NodeInfo, _slot: &Slot) -> Verdict {
        let (has, used) = (&node.allocatable, &node.requested);
        let (mut lacking, is_too_small) = lacking(&self.args, &pod.requests, has, used);
        if i64::try_from(node.pods.len()).unwrap_or(i64::MAX) >= has.pods {
            lacking.add(Lacking::PODS);
        }
        if lacking.is_empty() {
            Verdict::Fit
        } else if is_too_small {
            Verdict::Unresolvable(Reason::Lacking(lacking))
        } else {
            Verdict::Unschedulable(Reason::Lacking(lacking))
        }
    }

    fn score(&self, pod: &PodInfo, node: &NodeInfo, _world: &Snapshot, _slot: &Slot) -> i64 {
        let scoring = &self.args.scoring;
        scoring.score(uses(&scoring.resources, pod, node, true))
    }

    fn can_help(&self, change: &WorldChange, pod: &PodInfo) -> bool {
        match change {
            WorldChange::Itself | WorldChange::PodGone(_) => true,
            WorldChange::PodUpdated { old, new } => {
                is_more(&pod.requests, &new.requests, &old.requests)
            }
            _ => self.node_can_help(change, &pod.requests),
        }
    }
}

#[cfg(test)]
mod tests;
