//! Decides what one pass does for one set. Pure.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::kind::Spec;
use super::{pods, rank};
use crate::ownership::{Claim, claim};

/// Bounds one pass, so that one huge set cannot hold a worker; the rest follows when these are
/// seen. Upstream's burst.
pub(super) const PODS_PER_PASS_MAX: usize = 500;

/// What the caches show.
#[derive(Debug)]
pub(super) struct Observed<'a> {
    pub meta: &'a ObjectMeta,
    pub spec: &'a Spec<'a>,
    /// Pods that this set controls, and orphans of its namespace.
    pub pods: Vec<Arc<Pod>>,
    /// Pods of this set and its siblings; needed only when there are too many pods.
    pub related: Vec<Arc<Pod>>,
    /// Whether the cache has seen what earlier passes did.
    pub satisfied: bool,
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub adopt: Vec<Arc<Pod>>,
    pub release: Vec<Arc<Pod>>,
    /// The set's live pods once adoptions and releases are done.
    pub active: Vec<Arc<Pod>>,
    pub terminating: Vec<Arc<Pod>>,
    /// How many pods to create.
    pub create: usize,
    pub delete: Vec<Arc<Pod>>,
}

pub(super) fn plan(observed: &Observed<'_>, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    for pod in &observed.pods {
        let claimed = claim(observed.meta, &observed.spec.selector, &pod.metadata);
        if pods::is_active(pod) {
            match claimed {
                Claim::Own => plan.active.push(pod.clone()),
                Claim::Adopt => {
                    plan.adopt.push(pod.clone());
                    plan.active.push(pod.clone());
                }
                Claim::Release => plan.release.push(pod.clone()),
                Claim::Ignore => {}
            }
        } else if claimed == Claim::Own && pods::is_terminating(pod) {
            plan.terminating.push(pod.clone());
        }
    }
    if !observed.satisfied || observed.meta.deletion_timestamp.is_some() {
        return plan;
    }
    let wanted = usize::try_from(observed.spec.replicas).unwrap_or(0);
    let have = plan.active.len();
    if have < wanted {
        plan.create = (wanted - have).min(PODS_PER_PASS_MAX);
    } else if have > wanted {
        let count = (have - wanted).min(PODS_PER_PASS_MAX);
        plan.delete = rank::first_to_go(&plan.active, &observed.related, count, now);
    }
    plan
}
