//! Filter: rejects a node with too little left of what the pod requests. What the node has no device
//! plugin for, and a class of devices stands behind, is left to `DynamicResources`.
//! Score: prefers nodes by how much of their resources is given away: least, most, or by a curve.

use super::dynamic_resources::{Offer, Offers};
use super::node_resources::{offer_for, uses};
use crate::cache::Snapshot;
use crate::devices::resources_of;
use crate::framework::{Lacking, Plugin, Points, PreFilter, Reason, Slot, Verdict, WorldChange};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use crate::resources::Resources;
use k8s_openapi::api::resource::v1::DeviceClass;
use std::sync::Arc;

mod strategy; // How what is given away makes a score.

pub use strategy::{Point, Scoring, Strategy};

#[derive(Debug, Default)]
pub struct NodeResourcesFit {
    args: Args,
    offers: Offers,
}

/// Which of the pod's scalars, by their places, may be devices of a class.
#[derive(Clone, Debug)]
struct Backed(Arc<[bool]>);

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

/// What a pod asks for.
#[derive(Clone, Copy)]
struct Asked<'a> {
    amounts: &'a Resources,
    /// See `Backed`.
    backed: &'a [bool],
}

impl Asked<'_> {
    /// Whether the node may have the scalar at this place as devices.
    fn is_devices(&self, place: usize, has: &Resources) -> bool {
        let is_backed = self.backed.get(place).is_some_and(|is_backed| *is_backed);
        is_backed && has.scalar(&self.amounts.scalars[place].0) == 0
    }
}

/// What a node has too little of, and whether it had when it was empty.
fn lacking(args: &Args, asked: Asked<'_>, has: &Resources, used: &Resources) -> (Lacking, bool) {
    let (mut lacking, mut is_too_small) = (Lacking::default(), false);
    let mut check = |which, asked: i64, has: i64, used: i64| {
        if asked > 0 && asked > has - used {
            lacking.add(which);
            is_too_small |= asked > has;
        }
    };
    for (which, amount) in AMOUNTS {
        check(which, amount(asked.amounts), amount(has), amount(used));
    }
    let scalars = asked.amounts.scalars.iter().enumerate();
    for (which, (place, (name, amount))) in (Lacking::SCALARS..).zip(scalars) {
        if !args.ignores(name) && !asked.is_devices(place, has) {
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

/// Whether it gives out devices as something that is asked for, and did not before.
fn class_helps(old: Option<&DeviceClass>, new: &DeviceClass, asked: &Resources) -> bool {
    let before: Vec<String> = old.into_iter().flat_map(resources_of).collect();
    let mut added = resources_of(new).filter(|name| !before.contains(name));
    added.any(|name| asked.has_scalar(&name))
}

impl NodeResourcesFit {
    pub fn new(args: Args, offers: Offers) -> Self {
        Self { args, offers }
    }

    /// A node that is too small even when empty helps nobody.
    fn node_can_help(&self, change: &WorldChange, asked: &Resources) -> bool {
        let Some(node) = change.node() else {
            return false;
        };
        let has = &node.allocatable;
        let backed = self.offers.backed(asked).unwrap_or_default();
        let asked = Asked {
            amounts: asked,
            backed: &backed,
        };
        let (lacking, _) = lacking(&self.args, asked, has, &Resources::default());
        if !lacking.is_empty() || has.pods < 1 {
            return false;
        }
        let WorldChange::NodeUpdated { old, .. } = change else {
            return true;
        };
        let had = &old.allocatable;
        let mut scalars = asked.amounts.scalars.iter().enumerate();
        has.pods > had.pods
            || is_more(asked.amounts, had, has)
            || scalars.any(|(place, (_, amount))| *amount > 0 && asked.is_devices(place, has))
    }
}

impl Plugin for NodeResourcesFit {
    fn name(&self) -> &'static str {
        "NodeResourcesFit"
    }

    fn points(&self) -> Points {
        Points::PREPARED_FILTER_AND_SCORE
    }

    fn pre_filter(&self, pod: &PodInfo, _world: &Snapshot, slot: &mut Slot) -> PreFilter {
        if let Some(backed) = self.offers.backed(&pod.requests) {
            slot.set(Backed(backed.into()));
        }
        PreFilter::Filter
    }

    fn filter(&self, pod: &PodInfo, node: &NodeInfo, slot: &Slot) -> Verdict {
        let (has, used) = (&node.facts.allocatable, &node.requested);
        let asked = Asked {
            amounts: &pod.requests,
            backed: slot.get::<Backed>().map_or(&[], |backed| &backed.0),
        };
        let (mut lacking, is_too_small) = lacking(&self.args, asked, has, used);
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

    fn pre_score(
        &self,
        pod: &PodInfo,
        _nodes: &[&NodeInfo],
        _world: &Snapshot,
        slot: &mut Slot,
    ) -> bool {
        if let Some(offer) = offer_for(&self.args.scoring.resources, pod, &self.offers) {
            slot.set(offer);
        }
        true
    }

    fn score(&self, pod: &PodInfo, node: &NodeInfo, _world: &Snapshot, slot: &Slot) -> i64 {
        let scoring = &self.args.scoring;
        let offer = slot.get::<Offer>();
        scoring.score(uses(&scoring.resources, pod, node, true, offer))
    }

    fn can_help(&self, change: &WorldChange, pod: &PodInfo) -> bool {
        match change {
            WorldChange::Itself | WorldChange::PodGone(_) => true,
            WorldChange::PodUpdated { old, new } => {
                is_more(&pod.requests, &new.requests, &old.requests)
            }
            WorldChange::DeviceClass { old, new } => {
                class_helps(old.as_deref(), new, &pod.requests)
            }
            _ => self.node_can_help(change, &pod.requests),
        }
    }
}

#[cfg(test)]
mod tests;
