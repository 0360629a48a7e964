//! PostFilter: what is done about a pod that fits nowhere.

use super::{CycleState, Filters};
use crate::pod_info::PodInfo;
use k8s_openapi::api::resource::v1::ResourceClaim;
use std::sync::Arc;

/// What the cycle found of a pod that fits nowhere.
#[derive(Clone, Copy, Debug)]
pub struct Unfit<'a> {
    pub filters: Filters<'a>,
    /// After PreFilter; empty where PreFilter itself refused the pod.
    pub state: &'a CycleState,
    /// Places in `world.nodes`, rising, of the nodes that `Verdict::Unschedulable` refused: taking
    /// pods off them may help, and it does not on others. None where PreFilter refused the pod.
    pub helpful: &'a [usize],
    /// Whose PreFilter refused the pod, if one did.
    pub refused_by: Option<&'static str>,
    /// By chance: where among `helpful` to begin.
    pub offset: usize,
}

/// What becomes of the node that the pod was promised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Nomination {
    /// As it was.
    #[default]
    Keep,
    Clear,
    Node(Arc<str>),
}

/// Pods that must go so that another has room.
#[derive(Clone, Debug)]
pub struct Preemption {
    pub node: Arc<str>,
    /// The most important first.
    pub victims: Vec<Arc<PodInfo>>,
}

/// What is to be done with a claim of devices.
#[derive(Clone, Debug)]
pub enum Release {
    /// It gives back its devices.
    Devices(Arc<ResourceClaim>),
    /// It goes.
    Claim(Arc<ResourceClaim>),
}

impl Release {
    pub fn claim(&self) -> &Arc<ResourceClaim> {
        match self {
            Self::Devices(claim) | Self::Claim(claim) => claim,
        }
    }
}

/// What a plugin does about it.
#[derive(Clone, Debug, Default)]
pub struct Remedy {
    /// For users, after the reasons; empty where there is nothing to add.
    pub message: String,
    pub nomination: Nomination,
    pub preemption: Option<Preemption>,
    pub release: Option<Release>,
    /// No other plugin is asked, and nothing else is told.
    pub is_final: bool,
}

impl Remedy {
    /// True when there is a node that the pod may have.
    pub fn is_found(&self) -> bool {
        matches!(self.nomination, Nomination::Node(_))
    }

    pub fn none(message: String, nomination: Nomination) -> Self {
        Self {
            message,
            nomination,
            ..Self::default()
        }
    }
}
