//! PreFilter and Filter of all plugins of a profile for one pod.

use super::state::{CycleState, Kept};
use super::{Point, PreFilter, Profile, Reason, SharedPlugin, Verdict};
use crate::cache::Snapshot;
use crate::laps::{Stage, Status, Timing};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Which plugin refused a node, and why.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub plugin: &'static str,
    pub verdict: Verdict,
}

/// Why no node comes into question, before any was looked at.
#[derive(Clone, Debug)]
pub struct RefusedAll {
    pub plugins: Vec<&'static str>,
    pub verdict: Verdict,
}

/// The filters of a profile for one pod over one snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Filters<'a> {
    pub profile: &'a Profile,
    pub world: &'a Snapshot,
    pub pod: &'a PodInfo,
    pub timing: Timing<'a>,
}

/// What PreFilter left to filter.
#[derive(Debug, Default)]
pub struct Begun {
    pub state: CycleState,
    /// Only these nodes come into question; `None` when all do.
    pub only: Option<BTreeSet<Arc<str>>>,
    /// Who said so.
    pub only_by: Vec<&'static str>,
}

impl Begun {
    fn narrow(&mut self, nodes: BTreeSet<Arc<str>>, by: &'static str) {
        match &mut self.only {
            Some(known) => known.retain(|node| nodes.contains(node)),
            None => self.only = Some(nodes),
        }
        self.only_by.push(by);
    }

    pub fn may_take(&self, node: &NodeInfo) -> bool {
        let only = self.only.as_ref();
        only.is_none_or(|nodes| nodes.contains(&node.name))
    }

    /// What users read when plugins left no node together, or one left none.
    fn left_none(&self) -> Option<Reason> {
        if !self.only.as_ref()?.is_empty() {
            return None;
        }
        let text = match self.only_by.as_slice() {
            [one] => format!("node(s) didn't satisfy plugin {one}"),
            many => {
                let mut names = many.to_vec();
                names.sort_unstable();
                let names = names.join(" ");
                format!("node(s) didn't satisfy plugin(s) [{names}] simultaneously")
            }
        };
        Some(Reason::Told(text.into()))
    }
}

impl<'a> Filters<'a> {
    /// Not timed.
    pub fn new(profile: &'a Profile, world: &'a Snapshot, pod: &'a PodInfo) -> Self {
        Self {
            profile,
            world,
            pod,
            timing: Timing::OFF,
        }
    }

    /// Runs PreFilter of all plugins; ends with the first that refuses the pod everywhere.
    pub fn begin(&self) -> Result<Begun, RefusedAll> {
        let mut begun = Begun::default();
        let count = self.profile.plugins().count();
        begun.state.0.resize_with(count, Kept::default);
        for (place, plugin) in self.profile.at(Point::PreFilter) {
            let kept = &mut begun.state.0[place];
            let ask = || plugin.pre_filter(self.pod, self.world, &mut kept.slot);
            match self.timing.call((Stage::PreFilter, place), ask, status) {
                PreFilter::Filter => {}
                PreFilter::Skip => kept.is_skipped = true,
                PreFilter::Only(nodes) => begun.narrow(nodes, plugin.name()),
                PreFilter::Refuse(verdict) => {
                    let plugins = vec![plugin.name()];
                    return Err(RefusedAll { plugins, verdict });
                }
            }
            if let Some(reason) = begun.left_none() {
                return Err(RefusedAll {
                    plugins: begun.only_by,
                    verdict: Verdict::Unresolvable(reason),
                });
            }
        }
        let filters = self.filters(&begun.state).map(|(place, _)| place);
        self.timing.filters(filters);
        Ok(begun)
    }

    /// Who is asked for each node, with the place in the profile.
    fn filters(&self, state: &CycleState) -> impl Iterator<Item = (usize, &'a SharedPlugin)> {
        let filters = self.profile.at(Point::Filter);
        filters.filter(|(place, _)| !state.0[*place].is_skipped)
    }

    /// The first filter that refuses the node, if any.
    pub fn refusal(&self, node: &NodeInfo, state: &CycleState) -> Option<Refusal> {
        if self.timing.is_detailed() {
            return self.refusals(node, state).next();
        }
        let mut asked = 0;
        let refusal = self.filters(state).find_map(|(place, plugin)| {
            asked += 1;
            let verdict = plugin.filter(self.pod, node, &state.0[place].slot);
            refused(plugin, verdict)
        });
        self.timing.filtered(asked);
        refusal
    }

    /// All filters that refuse the node.
    pub fn refusals(&self, node: &NodeInfo, state: &CycleState) -> impl Iterator<Item = Refusal> {
        self.filters(state).filter_map(|(place, plugin)| {
            let ask = || plugin.filter(self.pod, node, &state.0[place].slot);
            let verdict = self.timing.call((Stage::Filter, place), ask, Status::of);
            refused(plugin, verdict)
        })
    }

    /// The same with the pods on the node that were promised it and to which this pod yields, then
    /// without them: they may never come, and some filters want others there. The state is the same
    /// again afterwards: a copy of what is worked out for all nodes would cost more than the rest.
    pub fn refusal_with_nominated(
        &self,
        node: &NodeInfo,
        state: &mut CycleState,
    ) -> Option<Refusal> {
        let yields_to = |other: &&Arc<PodInfo>| {
            other.priority >= self.pod.priority && other.uid != self.pod.uid
        };
        let promised = self.world.nominated.on(&node.name);
        let promised: Vec<_> = promised.iter().filter(yields_to).collect();
        if promised.is_empty() {
            return self.refusal(node, state);
        }
        let mut with = node.clone();
        for other in &promised {
            with.add_pod(Arc::clone(other));
            self.add_pod(other, &with, state);
        }
        let refusal = self.refusal(&with, state);
        for other in promised.iter().rev() {
            with.remove_pod(&other.uid);
            self.remove_pod(other, &with, state);
        }
        refusal.or_else(|| self.refusal(node, state))
    }

    /// The state as it would be with `other` on `node`, to which the caller has added it.
    pub fn add_pod(&self, other: &PodInfo, node: &NodeInfo, state: &mut CycleState) {
        for (plugin, kept) in self.profile.plugins().zip(&mut state.0) {
            if !kept.is_skipped {
                plugin.add_pod(self.pod, other, node, &mut kept.slot);
            }
        }
    }

    /// The state as it would be without `other` on `node`, from which the caller has taken it.
    pub fn remove_pod(&self, other: &PodInfo, node: &NodeInfo, state: &mut CycleState) {
        for (plugin, kept) in self.profile.plugins().zip(&mut state.0) {
            if !kept.is_skipped {
                plugin.remove_pod(self.pod, other, node, &mut kept.slot);
            }
        }
    }
}

fn refused(plugin: &SharedPlugin, verdict: Verdict) -> Option<Refusal> {
    match verdict {
        Verdict::Fit => None,
        verdict => Some(Refusal {
            plugin: plugin.name(),
            verdict,
        }),
    }
}

fn status(said: &PreFilter) -> Status {
    match said {
        PreFilter::Filter | PreFilter::Only(_) => Status::Success,
        PreFilter::Skip => Status::Skip,
        PreFilter::Refuse(verdict) => Status::of(verdict),
    }
}
