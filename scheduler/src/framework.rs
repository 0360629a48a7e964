//! The scheduling framework: the points at which a plugin takes part, and what it can say there.
//!
//! A pod goes through PreEnqueue before it may queue, and QueueSort orders the queue. A cycle runs
//! PreFilter, Filter for each node, PostFilter when no node fits, PreScore, Score with
//! normalization. Then Reserve, Permit, PreBind, Bind and PostBind follow off the cycle; what PreBind
//! began with others is waited for before Bind.
//! Filters and scores are pure: no allocation, no await, no clock. What PreFilter and PreScore work
//! out for the pod is kept in the plugin's slot of the cycle.

use crate::cache::Snapshot;
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use futures::future::BoxFuture;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

mod filters; // PreFilter and Filter of all plugins for one pod.
pub mod hints; // Which changes of the world can help a pod that a plugin refused.
mod labels; // How updates are called.
mod point; // The points by name.
mod profile; // Which plugins, in which order, with which weights.
mod remedy; // What is done about a pod that fits nowhere.
mod state; // What plugins worked out for the pod of one cycle.

pub use filters::{Begun, Filters, Refusal, RefusedAll};
pub use hints::WorldChange;
pub use labels::pod_updated;
pub use point::Point;
pub use profile::{Profile, Profiles};
pub use remedy::{Nomination, Preemption, Release, Remedy, Unfit};
pub use state::{CycleState, Slot};

/// Scores are between 0 and this after normalization.
pub const SCORE_MAX: i64 = 100;

/// Why a node does not do. Users see the text, counted over nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    Text(&'static str),
    /// Of a plugin that looks at several things.
    Texts(&'static [&'static str]),
    /// For what is said once a cycle, not once a node.
    Told(Arc<str>),
    /// What there is too little of.
    Lacking(Lacking),
}

/// A set of resources: pods, cpu, memory, ephemeral storage, then the pod's scalars in order.
/// More scalars than fit are told as the last of them; a pod has a handful.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lacking(u32);

impl Lacking {
    pub const PODS: u32 = 0;
    pub const CPU: u32 = 1;
    pub const MEMORY: u32 = 2;
    pub const EPHEMERAL_STORAGE: u32 = 3;
    pub const SCALARS: u32 = 4;
    const LAST: u32 = 31;

    pub fn add(&mut self, which: u32) {
        self.0 |= 1 << which.min(Self::LAST);
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn has(self, which: u32) -> bool {
        self.0 & (1 << which) != 0
    }
}

impl Reason {
    pub fn texts(&self, pod: &PodInfo) -> Vec<String> {
        let mut texts = Vec::new();
        self.each(pod, |text| texts.push(text));
        texts
    }

    /// Adds each text of this reason; `pod` names the scalars.
    pub fn each(&self, pod: &PodInfo, mut add: impl FnMut(String)) {
        let lacking = match self {
            Self::Text(text) => return add((*text).to_owned()),
            Self::Texts(texts) => return texts.iter().for_each(|text| add((*text).to_owned())),
            Self::Told(text) => return add(text.to_string()),
            Self::Lacking(lacking) => *lacking,
        };
        if lacking.has(Lacking::PODS) {
            add("Too many pods".to_owned());
        }
        let named = [
            (Lacking::CPU, "cpu"),
            (Lacking::MEMORY, "memory"),
            (Lacking::EPHEMERAL_STORAGE, "ephemeral-storage"),
        ];
        for (which, name) in named {
            if lacking.has(which) {
                add(format!("Insufficient {name}"));
            }
        }
        for (which, (name, _)) in (Lacking::SCALARS..=Lacking::LAST).zip(&pod.requests.scalars) {
            if lacking.has(which) {
                add(format!("Insufficient {name}"));
            }
        }
    }
}

/// What a plugin says of a pod, or of a pod on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Fit,
    /// Not now; evicting pods might help.
    Unschedulable(Reason),
    /// Not now, and evicting pods would not help.
    Unresolvable(Reason),
    /// It cannot be told: the cycle ends, whatever other nodes say, and the pod is tried again.
    /// Of filters alone.
    Failed(Reason),
}

impl Verdict {
    pub fn into_reason(self) -> Option<Reason> {
        match self {
            Self::Fit => None,
            Self::Unschedulable(reason) | Self::Unresolvable(reason) | Self::Failed(reason) => {
                Some(reason)
            }
        }
    }
}

/// What PreFilter says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreFilter {
    /// Ask for each node.
    Filter,
    /// Any node will do, whatever happens to pods: the filter is not asked.
    Skip,
    /// Ask for these nodes; no other comes into question.
    Only(BTreeSet<Arc<str>>),
    /// No node will do.
    Refuse(Verdict),
}

/// What Permit says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permission {
    Allow,
    Deny(String),
    /// Ask again when this has passed, or give up after the framework's bound.
    Wait(Duration),
}

/// A failure off the cycle: reserving, permitting, binding.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The pod is not to go there, as things are.
    #[error("{plugin} refused the pod: {why}")]
    Refused { plugin: &'static str, why: String },
    /// Something went wrong.
    #[error("{plugin} failed")]
    Failed {
        plugin: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StepError {
    pub fn failed(
        plugin: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let source = source.into();
        Self::Failed { plugin, source }
    }
}

/// Place of a pod in the active queue: smaller goes first.
pub type SortKey = (i64, u64);

/// A plugin: it takes part where it says something else than the default.
pub trait Plugin: Debug + Send + Sync {
    fn name(&self) -> &'static str;

    /// The points beside PreEnqueue, Permit and the binding steps at which it takes part; the
    /// framework skips it at others.
    fn points(&self) -> Points;

    /// False keeps the pod out of the queue until it changes.
    fn pre_enqueue(&self, _pod: &PodInfo) -> bool {
        true
    }

    /// Orders the queue; `entered` rises with the time at which pods came.
    fn sort_key(&self, _pod: &PodInfo, _entered: u64) -> SortKey {
        (0, 0)
    }

    /// Once a cycle, before any node. `slot` is the plugin's own until the last filter.
    fn pre_filter(&self, _pod: &PodInfo, _world: &Snapshot, _slot: &mut Slot) -> PreFilter {
        PreFilter::Filter
    }

    fn filter(&self, _pod: &PodInfo, _node: &NodeInfo, _slot: &Slot) -> Verdict {
        Verdict::Fit
    }

    /// Makes of what `pre_filter` kept what it would be with `other` on `node`.
    fn add_pod(&self, _pod: &PodInfo, _other: &PodInfo, _node: &NodeInfo, _slot: &mut Slot) {}

    /// Makes of what `pre_filter` kept what it would be without `other` on `node`. Undoes `add_pod`
    /// exactly, and `add_pod` undoes this: one state serves for all that is tried.
    fn remove_pod(&self, _pod: &PodInfo, _other: &PodInfo, _node: &NodeInfo, _slot: &mut Slot) {}

    /// When no node fits: what can be done about it. Decides only; the loop does it.
    fn post_filter(&self, _unfit: &Unfit<'_>) -> Remedy {
        Remedy::default()
    }

    /// Once a cycle, before the nodes that fit are scored: false when it has nothing to say for
    /// this pod. `slot` is the plugin's own until the scores are normalized.
    fn pre_score(
        &self,
        _pod: &PodInfo,
        _nodes: &[&NodeInfo],
        _world: &Snapshot,
        _slot: &mut Slot,
    ) -> bool {
        true
    }

    fn score(&self, _pod: &PodInfo, _node: &NodeInfo, _world: &Snapshot, _slot: &Slot) -> i64 {
        0
    }

    /// Brings the scores of all nodes between 0 and `SCORE_MAX`; `scores` has one for each of
    /// `nodes`.
    fn normalize(&self, _nodes: &[&NodeInfo], _scores: &mut [i64], _slot: &Slot) {}

    /// Whether a change of the world can help a pod that this plugin refused.
    fn can_help(&self, _change: &WorldChange, _pod: &PodInfo) -> bool {
        true
    }

    fn reserve(&self, _pod: &PodInfo, _node: &str) -> Result<(), StepError> {
        Ok(())
    }

    /// Undoes `reserve`; called in reverse order, also where `reserve` was not.
    fn unreserve(&self, _pod: &PodInfo, _node: &str) {}

    fn permit(&self, _pod: &PodInfo, _node: &str) -> Permission {
        Permission::Allow
    }

    fn pre_bind<'a>(
        &'a self,
        _pod: &'a PodInfo,
        _node: &'a str,
    ) -> BoxFuture<'a, Result<(), StepError>> {
        Box::pin(async { Ok(()) })
    }

    /// What PreBind began and others must end, if anything: waited for without one of the bounded
    /// places of bindings, and bounded by the plugin.
    fn settle<'a>(
        &'a self,
        _pod: &'a PodInfo,
        _node: &'a str,
    ) -> Option<BoxFuture<'a, Result<(), StepError>>> {
        None
    }

    /// `None` leaves the binding to the next plugin.
    fn bind<'a>(
        &'a self,
        _pod: &'a PodInfo,
        _node: &'a str,
    ) -> BoxFuture<'a, Option<Result<(), StepError>>> {
        Box::pin(async { None })
    }

    fn post_bind(&self, _pod: &PodInfo, _node: &str) {}
}

/// At which points of the cycle a plugin takes part.
#[derive(Clone, Copy, Debug, Default)]
pub struct Points {
    pub pre_filter: bool,
    pub filter: bool,
    pub post_filter: bool,
    pub score: bool,
}

impl Points {
    pub const FILTER: Self = Self {
        pre_filter: false,
        filter: true,
        post_filter: false,
        score: false,
    };
    /// With what PreFilter works out.
    pub const PREPARED_FILTER: Self = Self {
        pre_filter: true,
        ..Self::FILTER
    };
    pub const SCORE: Self = Self {
        pre_filter: false,
        filter: false,
        post_filter: false,
        score: true,
    };
    pub const FILTER_AND_SCORE: Self = Self {
        pre_filter: false,
        filter: true,
        post_filter: false,
        score: true,
    };
    pub const PREPARED_FILTER_AND_SCORE: Self = Self {
        pre_filter: true,
        ..Self::FILTER_AND_SCORE
    };
    pub const NONE: Self = Self {
        pre_filter: false,
        filter: false,
        post_filter: false,
        score: false,
    };
}

/// Stretches scores so that the highest is `SCORE_MAX`; `reverse` makes the lowest the best.
pub fn normalize_to_max(scores: &mut [i64], reverse: bool) {
    let highest = scores.iter().copied().max().unwrap_or(0);
    for score in scores {
        if highest == 0 {
            *score = if reverse { SCORE_MAX } else { 0 };
            continue;
        }
        *score = *score * SCORE_MAX / highest;
        if reverse {
            *score = SCORE_MAX - *score;
        }
    }
}

/// Plugins are shared by the cycle and by bindings under way.
pub type SharedPlugin = Arc<dyn Plugin>;
