//! Decides what one pass does for one set. Pure.
//!
//! In order, a pod is made, changed or deleted only when all that come before it are available;
//! in parallel nothing waits, except that a rolling update does. Missing pods come first, then
//! those that are too many, from the highest ordinal down, and only then pods of old revisions.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetStatus};
use k8s_openapi::api::core::v1::Pod;

use super::claims::{self, Claims, Find};
use super::identity::{self, Revision};
use super::spec::{self, Strategy};
use super::status;
use crate::labels::Selector;
use crate::ownership::{Claim, claim};
use crate::pods;

/// What is the set's, and what has to be done for it to be so.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// By ordinal; those to be adopted among them.
    pub pods: BTreeMap<i32, Arc<Pod>>,
    pub adopt: Vec<Arc<Pod>>,
    pub release: Vec<Arc<Pod>>,
}

/// What the caches show.
pub(super) struct Observed<'a> {
    pub set: &'a StatefulSet,
    pub spec: &'a StatefulSetSpec,
    /// What pods below the partition are made from.
    pub current: Revision<'a>,
    /// What pods are to become.
    pub update: Revision<'a>,
    pub pods: &'a BTreeMap<i32, Arc<Pod>>,
    pub find_claim: Find<'a>,
    pub now: Timestamp,
}

/// One thing to do for one pod.
#[derive(Debug)]
pub(super) enum Step {
    /// Its claims first.
    Create {
        pod: Box<Pod>,
        claims: Claims,
    },
    Keep {
        pod: Arc<Pod>,
        /// The pod as it should be, if it is not so.
        mended: Option<Box<Pod>>,
        claims: Claims,
        /// Whether an event says that the pod was updated. Of claims alone upstream tells only
        /// where the pod is one to stay.
        told: bool,
    },
    Delete(Arc<Pod>),
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Each phase begins when all of the one before succeeded.
    pub phases: Vec<Vec<Step>>,
    /// Steps of one phase need not wait for each other.
    pub parallel: bool,
    /// Pods of old revisions that go after everything else.
    pub outdated: Vec<Arc<Pod>>,
    /// Before the deletion of what is outdated.
    pub status: StatefulSetStatus,
}

/// A pod of the set that is there or should be, by its place from the first ordinal on.
enum Slot {
    Missing(i32),
    Taken(i32, Arc<Pod>),
}

/// Sorts out the pods that the set controls, and the orphans of its namespace.
pub(super) fn members(set: &StatefulSet, selector: &Selector, pods: &[Arc<Pod>]) -> Members {
    let mut members = Members::default();
    for pod in pods {
        let ordinal = identity::ordinal(set, pod);
        match (claim(&set.metadata, selector, &pod.metadata), ordinal) {
            (Claim::Own, Some(ordinal)) => {
                members.pods.insert(ordinal, pod.clone());
            }
            (Claim::Adopt, Some(ordinal)) => {
                members.adopt.push(pod.clone());
                members.pods.insert(ordinal, pod.clone());
            }
            (Claim::Own, None) if set.metadata.deletion_timestamp.is_none() => {
                members.release.push(pod.clone());
            }
            (Claim::Release, _) => members.release.push(pod.clone()),
            (Claim::Own | Claim::Adopt, None) | (Claim::Ignore, _) => {}
        }
    }
    members
}

pub(super) fn plan(observed: &Observed<'_>) -> Plan {
    let mut plan = Plan {
        parallel: spec::is_parallel(observed.spec),
        status: status::next(observed),
        ..Plan::default()
    };
    if observed.set.metadata.deletion_timestamp.is_some() {
        return plan;
    }
    let monotonic = !plan.parallel;
    let slots = slots(observed);
    let (steps, blocked) = replicas(observed, &slots, monotonic);
    plan.phases.push(steps);
    if blocked {
        return plan;
    }
    let condemned: Vec<(i32, &Arc<Pod>)> = observed
        .pods
        .iter()
        .rev()
        .filter(|(ordinal, _)| !spec::wants(observed.spec, **ordinal))
        .map(|(ordinal, pod)| (*ordinal, pod))
        .collect();
    let hand_over = condemned.iter().filter_map(|(ordinal, pod)| {
        let claims = owners_of(observed, pod, *ordinal);
        keep(pod, None, claims, false)
    });
    plan.phases.push(hand_over.collect());
    let (steps, blocked) = scale_down(observed, &condemned, monotonic);
    plan.phases.push(steps);
    if !blocked {
        plan.outdated = outdated(observed, &slots);
    }
    plan
}

fn slots(observed: &Observed<'_>) -> Vec<Slot> {
    let start = spec::start(observed.spec);
    let end = start.saturating_add(spec::replicas(observed.spec));
    (start..end)
        .map(|ordinal| match observed.pods.get(&ordinal) {
            Some(pod) => Slot::Taken(ordinal, pod.clone()),
            None => Slot::Missing(ordinal),
        })
        .collect()
}

/// What the wanted pods need, and whether that keeps everything else waiting.
fn replicas(observed: &Observed<'_>, slots: &[Slot], monotonic: bool) -> (Vec<Step>, bool) {
    let mut steps = Vec::new();
    for slot in slots {
        let (step, blocked) = match slot {
            Slot::Missing(ordinal) => (create(observed, *ordinal), true),
            Slot::Taken(ordinal, pod) => replica(observed, pod, *ordinal, monotonic),
        };
        steps.extend(step);
        if blocked && monotonic {
            return (steps, true);
        }
    }
    (steps, false)
}

fn replica(
    observed: &Observed<'_>,
    pod: &Arc<Pod>,
    ordinal: i32,
    monotonic: bool,
) -> (Option<Step>, bool) {
    if pods::is_finished(pod) {
        // Its successor is made when it is gone.
        let delete = !pods::is_deleting(pod);
        return (delete.then(|| Step::Delete(pod.clone())), true);
    }
    let pending = pods::phase(pod) == "Pending";
    let waits = monotonic && (pods::is_deleting(pod) || !is_available(observed, pod));
    let (set, spec) = (observed.set, observed.spec);
    let claims = if pending {
        claims::look(set, spec, pod, ordinal, observed.find_claim)
    } else if waits {
        Claims::default()
    } else {
        owners_of(observed, pod, ordinal)
    };
    if waits {
        return (keep(pod, None, claims, false), true);
    }
    let mended = identity::mended(set, spec, pod, ordinal);
    let told = mended.is_some() || !claims.own.is_empty();
    (keep(pod, mended, claims, told), false)
}

fn keep(pod: &Arc<Pod>, mended: Option<Pod>, claims: Claims, told: bool) -> Option<Step> {
    (mended.is_some() || !claims.is_empty()).then(|| Step::Keep {
        pod: pod.clone(),
        mended: mended.map(Box::new),
        claims,
        told,
    })
}

fn owners_of(observed: &Observed<'_>, pod: &Pod, ordinal: i32) -> Claims {
    let (set, spec) = (observed.set, observed.spec);
    claims::owners(set, spec, pod, ordinal, observed.find_claim)
}

/// The step that makes a pod; `None` while a claim of its predecessor is still to go.
fn create(observed: &Observed<'_>, ordinal: i32) -> Option<Step> {
    let (set, spec, find) = (observed.set, observed.spec, observed.find_claim);
    let pod = identity::new_pod(set, spec, revision_for(observed, ordinal), ordinal);
    if claims::is_stale(set, spec, &pod, ordinal, find) {
        return None;
    }
    let claims = claims::look(set, spec, &pod, ordinal, find);
    let pod = Box::new(pod);
    Some(Step::Create { pod, claims })
}

/// Pods below the partition stay at the current revision.
fn revision_for<'a>(observed: &Observed<'a>, ordinal: i32) -> Revision<'a> {
    let behind = match spec::strategy(observed.spec) {
        Strategy::OnDelete => 0,
        Strategy::Rolling { partition, .. } => partition.unwrap_or_else(|| {
            let status = observed.set.status.as_ref();
            status
                .and_then(|status| status.current_replicas)
                .unwrap_or(0)
        }),
    };
    if ordinal < spec::start(observed.spec).saturating_add(behind) {
        observed.current
    } else {
        observed.update
    }
}

/// Deletes what is too many. In order one at a time goes, and not while another is unavailable.
fn scale_down(
    observed: &Observed<'_>,
    condemned: &[(i32, &Arc<Pod>)],
    monotonic: bool,
) -> (Vec<Step>, bool) {
    let all = condemned.iter().map(|(_, pod)| *pod);
    if !monotonic {
        let alive = all.filter(|pod| !pods::is_deleting(pod));
        return (alive.map(|pod| Step::Delete(pod.clone())).collect(), false);
    }
    let Some((highest, pod)) = condemned.first() else {
        return (Vec::new(), false);
    };
    let first_unhealthy = condemned
        .iter()
        .rev()
        .find(|(_, pod)| is_unavailable(observed, pod))
        .map(|(ordinal, _)| *ordinal);
    let healthy = pods::phase(pod) == "Running" && is_available(observed, pod);
    let may_go = !pods::is_deleting(pod) && (healthy || first_unhealthy == Some(*highest));
    let steps = may_go.then(|| Step::Delete((*pod).clone()));
    (steps.into_iter().collect(), true)
}

/// The pods that go for a newer revision, the highest ordinals first.
fn outdated(observed: &Observed<'_>, slots: &[Slot]) -> Vec<Arc<Pod>> {
    let Strategy::Rolling {
        partition,
        unavailable_max,
    } = spec::strategy(observed.spec)
    else {
        return Vec::new();
    };
    let behind = usize::try_from(partition.unwrap_or(0)).unwrap_or(0);
    let ahead = slots.iter().skip(behind).rev();
    let is_old = |pod: &Pod| identity::revision_of(pod) != observed.update.name;
    let Some(unavailable_max) = unavailable_max else {
        // One at a time, each when all above it are available; a broken old one may go.
        for slot in ahead {
            match slot {
                Slot::Taken(_, pod) if pods::is_finished(pod) => return Vec::new(),
                Slot::Taken(_, pod) if is_old(pod) && !pods::is_deleting(pod) => {
                    return vec![pod.clone()];
                }
                Slot::Taken(_, pod) if !is_unavailable(observed, pod) => {}
                Slot::Taken(..) | Slot::Missing(_) => return Vec::new(),
            }
        }
        return Vec::new();
    };
    let unavailable = slots.iter().filter(|slot| match slot {
        Slot::Taken(_, pod) => is_unavailable(observed, pod),
        Slot::Missing(_) => true,
    });
    let room = usize::try_from(unavailable_max)
        .unwrap_or(0)
        .saturating_sub(unavailable.count());
    ahead
        .filter_map(|slot| match slot {
            Slot::Taken(_, pod) if is_old(pod) && !pods::is_deleting(pod) => Some(pod.clone()),
            Slot::Taken(..) | Slot::Missing(_) => None,
        })
        .take(room)
        .collect()
}

fn is_available(observed: &Observed<'_>, pod: &Pod) -> bool {
    pods::phase(pod) == "Running"
        && pods::is_available(pod, spec::min_ready_seconds(observed.spec), observed.now)
}

fn is_unavailable(observed: &Observed<'_>, pod: &Pod) -> bool {
    let min_ready_seconds = spec::min_ready_seconds(observed.spec);
    pods::is_deleting(pod) || !pods::is_available(pod, min_ready_seconds, observed.now)
}
