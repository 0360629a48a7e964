//! A pod's topology spread constraints, with their selectors parsed.

use crate::pod_info::PodLabels;
use crate::selector::{self, Labels, Selector};
use k8s_openapi::api::core::v1::{PodSpec, TopologySpreadConstraint};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct SpreadConstraint {
    pub max_skew: i64,
    pub topology_key: Arc<str>,
    /// `DoNotSchedule`; else `ScheduleAnyway`.
    pub is_hard: bool,
    pub selector: Arc<Selector>,
    /// With fewer domains than this, the least of them counts as empty.
    pub min_domains: usize,
    /// Nodes that the pod's node affinity leaves out do not count.
    pub honors_affinity: bool,
    /// Nodes with taints that the pod does not tolerate do not count.
    pub honors_taints: bool,
    /// The pod counts itself.
    pub matches_self: bool,
}

impl SpreadConstraint {
    /// `labels` are the pod's.
    pub fn new(constraint: &TopologySpreadConstraint, labels: Option<&Labels>) -> Self {
        let mut selector = selector::parsed(constraint.label_selector.as_ref());
        // The API server writes them into the selector too; twice the same changes nothing.
        let keys = constraint.match_label_keys.iter().flatten();
        let own = keys.filter_map(|key| Some(selector::equal(key, labels?.get(key)?)));
        let mut added: Vec<_> = own.collect();
        if !added.is_empty() && constraint.label_selector.is_some() {
            added.extend_from_slice(selector.requirements());
            selector = Selector::from_requirements(added);
        }
        let honors = |policy: &Option<String>, default: &str| {
            policy.as_deref().unwrap_or(default) == "Honor"
        };
        Self {
            max_skew: constraint.max_skew.into(),
            topology_key: constraint.topology_key.as_str().into(),
            is_hard: constraint.when_unsatisfiable == "DoNotSchedule",
            min_domains: usize::try_from(constraint.min_domains.unwrap_or(1)).unwrap_or(1),
            honors_affinity: honors(&constraint.node_affinity_policy, "Honor"),
            honors_taints: honors(&constraint.node_taints_policy, "Ignore"),
            matches_self: selector::matches(&selector, labels),
            selector: Arc::new(selector),
        }
    }

    /// The same with another selector: for constraints that no pod spells out.
    #[must_use]
    pub fn with_selector(&self, selector: &Arc<Selector>, labels: &PodLabels) -> Self {
        Self {
            selector: Arc::clone(selector),
            matches_self: selector::matches(selector, Some(labels)),
            ..self.clone()
        }
    }
}

pub(super) fn of(spec: &PodSpec, labels: Option<&Labels>) -> Vec<SpreadConstraint> {
    let constraints = spec.topology_spread_constraints.iter().flatten();
    constraints
        .map(|one| SpreadConstraint::new(one, labels))
        .collect()
}
