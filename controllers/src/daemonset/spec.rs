//! What a DaemonSet asks for, resolved. Pure.
//!
//! The server has defaulted and validated the spec; what is missing all the same reads as
//! upstream's default.

use k8s_openapi::api::apps::v1::{DaemonSet, RollingUpdateDaemonSet};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::labels::Selector;
use crate::scaled::{Rounding, scaled};

/// The number of the template, from before there were revisions. Pods still carry it.
pub(super) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
const HISTORY_LIMIT: i32 = 10;

#[derive(Debug)]
pub(super) struct Spec<'a> {
    pub selector: Selector,
    pub template: &'a PodTemplateSpec,
    pub min_ready_seconds: i32,
    pub history_limit: usize,
    /// As pods carry it in a label.
    pub template_generation: Option<String>,
    /// `None` when pods are replaced only once somebody deletes them.
    pub rolling: Option<Rolling<'a>>,
}

#[derive(Debug, Default)]
pub(super) struct Rolling<'a> {
    surge: Option<&'a IntOrString>,
    unavailable: Option<&'a IntOrString>,
}

impl<'a> Spec<'a> {
    /// `None` when no pass can make sense of the set.
    pub(super) fn of(set: &'a DaemonSet) -> Option<Self> {
        let spec = set.spec.as_ref()?;
        let strategy = spec.update_strategy.as_ref();
        let kind = strategy.and_then(|strategy| strategy.type_.as_deref());
        let numbers = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let limit = spec.revision_history_limit.unwrap_or(HISTORY_LIMIT);
        Some(Self {
            selector: Selector::from_label_selector(&spec.selector)?,
            template: &spec.template,
            min_ready_seconds: spec.min_ready_seconds.unwrap_or(0),
            history_limit: usize::try_from(limit).unwrap_or(0),
            template_generation: template_generation(set),
            rolling: (kind != Some("OnDelete")).then(|| Rolling::of(numbers)),
        })
    }

    /// Whether a node may have an old and a new pod at the same time.
    pub(super) fn allows_surge(&self) -> bool {
        let rolling = self.rolling.as_ref();
        rolling.is_some_and(|rolling| rolling.surge(1) > 0)
    }
}

impl<'a> Rolling<'a> {
    fn of(numbers: Option<&'a RollingUpdateDaemonSet>) -> Self {
        Self {
            surge: numbers.and_then(|numbers| numbers.max_surge.as_ref()),
            unavailable: numbers.and_then(|numbers| numbers.max_unavailable.as_ref()),
        }
    }

    /// On how many of so many nodes there may be two pods.
    pub(super) fn surge(&self, nodes: usize) -> usize {
        self.surge.map_or(0, |value| share(value, nodes))
    }

    /// On how many of so many nodes the pod may be missing. At least one if there is no surge
    /// either: an update must be able to move.
    pub(super) fn unavailable(&self, nodes: usize) -> usize {
        let asked = self.unavailable.map_or(0, |value| share(value, nodes));
        if nodes > 0 && asked == 0 && self.surge(nodes) == 0 {
            1
        } else {
            asked
        }
    }
}

/// Both are rounded up.
fn share(value: &IntOrString, nodes: usize) -> usize {
    let nodes = i32::try_from(nodes).unwrap_or(i32::MAX);
    usize::try_from(scaled(value, nodes, Rounding::Up)).unwrap_or(0)
}

fn template_generation(set: &DaemonSet) -> Option<String> {
    let annotations = set.metadata.annotations.as_ref()?;
    let number: i64 = annotations.get(TEMPLATE_GENERATION)?.parse().ok()?;
    Some(number.to_string())
}
