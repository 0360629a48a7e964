//! How many pods a job shall have, which of them are too many, and which to make. Pure.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::plan::Pass;
use super::seen::{self, Seen};
use super::{SYNC_BATCH, backoff};
use crate::pods;

/// Bounds one pass, so that one huge job cannot hold a worker; the rest follows when these are
/// seen. Upstream's bound.
pub(super) const PODS_PER_PASS_MAX: usize = 500;

/// What to do with the pods of a job.
#[derive(Debug)]
pub(super) enum Action {
    /// The job ends: its live pods are deleted, and counted as the job's end says.
    End(Vec<Arc<Pod>>),
    /// Too many, or the job is suspended: deleted and never counted.
    Remove(Vec<Arc<Pod>>),
    /// The index of each pod to create.
    Create(Vec<Option<i32>>),
    /// Pods are missing, but the last failure is too fresh.
    Wait(Duration),
    /// As many as there shall be.
    Nothing,
    /// The cache lags, or the job is being deleted.
    NotNow,
}

pub(super) fn decide(pass: &Pass<'_>, now: Timestamp) -> Action {
    let spec = pass.spec;
    if spec.suspended {
        return Action::Remove(removal(pass, usize::MAX));
    }
    let wanted = match spec.completions {
        // One success is all it takes: the others may finish, none is added.
        None if pass.succeeded > 0 => pass.active,
        None => spec.parallelism,
        Some(completions) => (completions - pass.succeeded).clamp(0, spec.parallelism.max(0)),
    };
    let surplus = usize::try_from(pass.active - wanted).unwrap_or(0);
    let mut gone = removal(pass, surplus);
    gone.truncate(PODS_PER_PASS_MAX);
    if !gone.is_empty() {
        // Removal and creation may both be due, as with two pods of one index: removal first.
        return Action::Remove(gone);
    }
    let leaving = if spec.replaces_failed_only {
        pass.terminating
    } else {
        0
    };
    match usize::try_from(wanted - leaving - pass.active) {
        Ok(missing) if missing > 0 => create(pass, missing.min(PODS_PER_PASS_MAX), now),
        _ => Action::Nothing,
    }
}

fn create(pass: &Pass<'_>, count: usize, now: Timestamp) -> Action {
    let per_index = pass.spec.backoff_limit_per_index.is_some();
    if !per_index {
        let wait = pass.backoff.remaining(now);
        if !wait.is_zero() {
            return Action::Wait(wait.max(SYNC_BATCH));
        }
    }
    if !pass.spec.indexed {
        return Action::Create(vec![None; count]);
    }
    let mut indexes = pending_indexes(pass, count);
    if per_index {
        let wait = |index: &i32| {
            let failed = pass.awaiting_replacement.get(index);
            failed.map_or(Duration::ZERO, |pod| {
                let failures = seen::index_all_failures(pod).saturating_add(1);
                backoff::remaining(failures, backoff::finished_at(pod), now)
            })
        };
        let shortest = indexes.iter().map(wait).min().unwrap_or_default();
        if !shortest.is_zero() {
            return Action::Wait(shortest.max(SYNC_BATCH));
        }
        indexes.retain(|index| wait(index).is_zero());
    }
    Action::Create(indexes.into_iter().map(Some).collect())
}

/// The lowest indexes that are neither done nor under way.
fn pending_indexes(pass: &Pass<'_>, count: usize) -> Vec<i32> {
    let mut taken = pass.completed.with(pass.active_indexes());
    if pass.spec.replaces_failed_only {
        let leaving = pass
            .pods
            .iter()
            .filter(|one| pods::is_terminating(&one.pod));
        // Sorted by index, as all pods of an indexed job.
        taken = taken.with(leaving.filter_map(|one| one.index));
    }
    if let Some(failed) = &pass.failed_indexes {
        taken = taken.union(failed);
    }
    taken.missing(pass.spec.index_end(), count)
}

/// At least so many pods that are missed least; of an indexed job, all that have no index of
/// their own.
fn removal(pass: &Pass<'_>, at_least: usize) -> Vec<Arc<Pod>> {
    let (mut gone, mut left) = (Vec::new(), Vec::new());
    if pass.spec.indexed {
        let active: Vec<&Seen> = pass.active_pods().collect();
        for same in active.chunk_by(|a, b| a.index == b.index) {
            let known = same[0].valid_index(pass.spec).is_some();
            let mut same: Vec<&Arc<Pod>> = same.iter().map(|one| &one.pod).collect();
            if known {
                same.sort_by_key(|pod| standing(pod));
                left.extend(same.pop());
            }
            gone.extend(same);
        }
    } else {
        left.extend(pass.active_pods().map(|one| &one.pod));
    }
    if gone.len() < at_least {
        left.sort_by_key(|pod| standing(pod));
        let more = at_least - gone.len();
        gone.extend(left.into_iter().take(more));
    }
    gone.into_iter().cloned().collect()
}

/// Who is missed least comes first: not assigned to a node, then by phase, not ready, ready for
/// a shorter time, restarted more often, younger.
fn standing(pod: &Pod) -> impl Ord + use<> {
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (
        !pods::node_name(pod).is_empty(),
        pods::phase_order(pod),
        pods::is_ready(pod),
        // No time at all comes first, as youngest.
        pods::ready_since(pod).map(Reverse),
        Reverse(pods::restarts(pod)),
        created.map(Reverse),
    )
}
