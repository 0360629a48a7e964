//! Resources as the scores of nodes know them: what a node has of each, and what is given away there
//! without and with the pod. No plugin.

use super::dynamic_resources::{Offer, Offers};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use crate::resources::Resources;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    Cpu,
    Memory,
    EphemeralStorage,
    Scalar(Arc<str>),
}

impl Resource {
    pub fn named(name: &str) -> Self {
        match name {
            "cpu" => Self::Cpu,
            "memory" => Self::Memory,
            "ephemeral-storage" => Self::EphemeralStorage,
            _ => Self::Scalar(name.into()),
        }
    }

    fn of(&self, all: &Resources) -> i64 {
        match self {
            Self::Cpu => all.milli_cpu,
            Self::Memory => all.memory,
            Self::EphemeralStorage => all.ephemeral_storage,
            Self::Scalar(name) => all.scalar(name),
        }
    }
}

/// A resource that counts in a score, and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weighted {
    pub resource: Resource,
    pub weight: i64,
}

/// Cpu and memory alike.
pub fn default_resources() -> Vec<Weighted> {
    let alike = |resource| Weighted {
        resource,
        weight: 1,
    };
    vec![alike(Resource::Cpu), alike(Resource::Memory)]
}

/// Of one resource on one node.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    pub has: i64,
    pub before: i64,
    pub after: i64,
    pub weight: i64,
}

/// Of the resources that the node has; a scalar that the pod does not ask for does not count.
/// `is_padded` counts containers that ask for no cpu or memory as if they asked for a little. What
/// the node has no device plugin for it may have as devices of an `offer`.
pub fn uses<'a>(
    resources: &'a [Weighted],
    pod: &'a PodInfo,
    node: &'a NodeInfo,
    is_padded: bool,
    offer: Option<&'a Offer>,
) -> impl Iterator<Item = Use> + Clone {
    resources.iter().filter_map(move |one| {
        let padded = matches!(one.resource, Resource::Cpu | Resource::Memory) && is_padded;
        let (there, asked) = if padded {
            (&node.scored, &pod.scored)
        } else {
            (&node.requested, &pod.requests)
        };
        let (has, asked) = (
            one.resource.of(&node.facts.allocatable),
            one.resource.of(asked),
        );
        let (mut has, mut before) = (has, one.resource.of(there));
        if let Resource::Scalar(name) = &one.resource {
            if asked == 0 {
                return None;
            }
            if let (0, Some(offer)) = (has, offer) {
                (has, before) = offer.on(name, node);
            }
        }
        if has == 0 {
            return None;
        }
        Some(Use {
            has,
            before,
            after: before.saturating_add(asked),
            weight: one.weight,
        })
    })
}

/// The devices behind those of the resources that the pod asks for, if there are such.
pub fn offer_for(resources: &[Weighted], pod: &PodInfo, offers: &Offers) -> Option<Offer> {
    offers.of(resources.iter().filter_map(|one| match &one.resource {
        Resource::Scalar(name) if pod.requests.scalar(name) > 0 => Some(&**name),
        _ => None,
    }))
}

/// Whether the pod asks for any of the resources.
pub fn asks_for_any(resources: &[Weighted], pod: &PodInfo) -> bool {
    resources
        .iter()
        .any(|one| one.resource.of(&pod.requests) > 0)
}
