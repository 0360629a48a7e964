//! What a Deployment's status should say, and whether its rollout makes progress. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet};

use super::conditions::{self, AVAILABLE, PROGRESSING, REPLICA_FAILURE, reason};
use super::sets::Sets;
use super::{rollout, spec};

/// Times carry whole seconds: look again when the last of them is surely over.
const ROUNDING: Duration = Duration::from_secs(1);

pub(super) fn available(set: &ReplicaSet) -> i32 {
    set.status
        .as_ref()
        .and_then(|status| status.available_replicas)
        .unwrap_or(0)
}

/// Counts, and whether enough is available.
pub(super) fn write(deployment: &mut Deployment, sets: &Sets, now: Timestamp) {
    deployment.status = Some(counted(deployment, sets, now));
}

/// The same, and how the rollout goes. Returns how long until its deadline passes, if it is
/// under way.
pub(super) fn write_rollout(
    deployment: &mut Deployment,
    sets: &Sets,
    now: Timestamp,
) -> Option<Duration> {
    let mut status = counted(deployment, sets, now);
    judge(deployment, sets, &mut status, now);
    match failure(sets) {
        Some(failure) => conditions::set(&mut status, failure),
        None => conditions::remove(&mut status, REPLICA_FAILURE),
    }
    let left = time_left(deployment, &status, now);
    deployment.status = Some(status);
    left
}

/// Whether what there is to write are counts on the way, which nobody waits for: the rollout goes
/// on by what the sets say.
pub(super) fn is_count(observed: &Deployment, wanted: &Deployment) -> bool {
    let (old, new) = (observed.status.clone(), wanted.status.clone());
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    let reasons = |status: &DeploymentStatus| -> Vec<_> {
        let all = status.conditions.iter().flatten();
        all.map(|one| (one.type_.clone(), one.status.clone(), one.reason.clone()))
            .collect()
    };
    old != new
        && old.observed_generation == new.observed_generation
        && observed.metadata.annotations == wanted.metadata.annotations
        && reasons(&old) == reasons(&new)
        && !rollout::is_complete(wanted, &new)
}

fn counted(deployment: &Deployment, sets: &Sets, now: Timestamp) -> DeploymentStatus {
    let old = deployment.status.clone().unwrap_or_default();
    let sum = |count: &dyn Fn(&ReplicaSet) -> i32| sets.iter().map(count).sum::<i32>();
    let counts = |set: &ReplicaSet| set.status.clone().unwrap_or_default();
    let available_pods = sum(&available);
    let new = sets.new_set().map_or(0, |set| counts(set).replicas);
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: nonzero(sum(&|set| counts(set).replicas)),
        updated_replicas: nonzero(new),
        ready_replicas: nonzero(sum(&|set| counts(set).ready_replicas.unwrap_or(0))),
        available_replicas: nonzero(available_pods),
        unavailable_replicas: nonzero((sets.total_size() - available_pods).max(0)),
        terminating_replicas: terminating(sets),
        collision_count: old.collision_count,
        conditions: old.conditions,
    };
    let needed = spec::replicas(deployment) - spec::max_unavailable(deployment);
    let condition = if available_pods >= needed {
        let message = "Deployment has minimum availability.";
        conditions::new(AVAILABLE, "True", reason::AVAILABLE, message, now)
    } else {
        let message = "Deployment does not have minimum availability.";
        conditions::new(AVAILABLE, "False", reason::UNAVAILABLE, message, now)
    };
    conditions::set(&mut status, condition);
    status
}

/// Unknown while a set that was looked at has not counted its own; one that was not looked at yet
/// has none.
fn terminating(sets: &Sets) -> Option<i32> {
    let one = |set: &ReplicaSet| {
        let status = set.status.clone().unwrap_or_default();
        let fresh = status.observed_generation.unwrap_or(0) == 0;
        status.terminating_replicas.or(fresh.then_some(0))
    };
    sets.iter().map(one).sum()
}

/// Upstream leaves zeros out on the wire.
fn nonzero(count: i32) -> Option<i32> {
    (count > 0).then_some(count)
}

/// Sets the Progressing condition: complete, progressing, or out of time.
fn judge(deployment: &Deployment, sets: &Sets, status: &mut DeploymentStatus, now: Timestamp) {
    let Some(deadline) = spec::progress_deadline(deployment) else {
        conditions::remove(status, PROGRESSING);
        return;
    };
    let old = deployment.status.clone().unwrap_or_default();
    let settled = conditions::has_reason(&old, PROGRESSING, reason::NEW_SET_AVAILABLE);
    if settled && status.replicas == status.updated_replicas {
        return; // The rollout is over; what comes now is everyday life.
    }
    let who = match sets.new_set() {
        Some(set) => {
            format!(
                "ReplicaSet \"{}\"",
                set.metadata.name.as_deref().unwrap_or_default()
            )
        }
        None => {
            format!(
                "Deployment \"{}\"",
                deployment.metadata.name.as_deref().unwrap_or_default()
            )
        }
    };
    if rollout::is_complete(deployment, status) {
        let message = format!("{who} has successfully progressed.");
        let done = conditions::new(PROGRESSING, "True", reason::NEW_SET_AVAILABLE, message, now);
        conditions::set(status, done);
    } else if has_progressed(&old, status) {
        let message = format!("{who} is progressing.");
        let mut progress = conditions::new(PROGRESSING, "True", reason::SET_UPDATED, message, now);
        if let Some(current) = conditions::get(&old, PROGRESSING)
            && current.status == "True"
        {
            progress.last_transition_time = current.last_transition_time.clone();
        }
        // Written even with the same reason: its time says when progress was last seen.
        conditions::replace(status, progress);
    } else if has_timed_out(status, deadline, now) {
        let message = format!("{who} has timed out progressing.");
        let late = conditions::new(PROGRESSING, "False", reason::TIMED_OUT, message, now);
        conditions::set(status, late);
    }
}

fn has_progressed(old: &DeploymentStatus, new: &DeploymentStatus) -> bool {
    let count = |count: Option<i32>| count.unwrap_or(0);
    let outdated =
        |status: &DeploymentStatus| count(status.replicas) - count(status.updated_replicas);
    count(new.updated_replicas) > count(old.updated_replicas)
        || outdated(new) < outdated(old)
        || count(new.ready_replicas) > count(old.ready_replicas)
        || count(new.available_replicas) > count(old.available_replicas)
}

fn has_timed_out(status: &DeploymentStatus, deadline: Duration, now: Timestamp) -> bool {
    let Some(condition) = conditions::get(status, PROGRESSING) else {
        return false;
    };
    match condition.reason.as_deref() {
        Some(reason::NEW_SET_AVAILABLE) => false,
        Some(reason::TIMED_OUT) => true,
        _ => remaining(condition, deadline, now).is_some_and(|left| left.is_negative()),
    }
}

/// How long until the deadline after the last progress; negative when it is over.
fn remaining(
    condition: &DeploymentCondition,
    deadline: Duration,
    now: Timestamp,
) -> Option<SignedDuration> {
    let since = condition.last_update_time.as_ref()?.0;
    let deadline = SignedDuration::try_from(deadline).ok()?;
    Some(deadline - now.duration_since(since))
}

fn time_left(
    deployment: &Deployment,
    status: &DeploymentStatus,
    now: Timestamp,
) -> Option<Duration> {
    let deadline = spec::progress_deadline(deployment)?;
    let condition = conditions::get(status, PROGRESSING)?;
    let over = [reason::NEW_SET_AVAILABLE, reason::TIMED_OUT];
    if rollout::is_complete(deployment, status)
        || condition
            .reason
            .as_deref()
            .is_some_and(|reason| over.contains(&reason))
    {
        return None;
    }
    let left = remaining(condition, deadline, now)?;
    Some(Duration::try_from(left).unwrap_or(Duration::ZERO) + ROUNDING)
}

/// The failure of the new set, or else of any.
fn failure(sets: &Sets) -> Option<DeploymentCondition> {
    let of = |set: &ReplicaSet| {
        let conditions = set.status.as_ref()?.conditions.as_ref()?;
        let found = conditions
            .iter()
            .find(|one| one.type_ == REPLICA_FAILURE)?
            .clone();
        Some(DeploymentCondition {
            type_: found.type_,
            status: found.status,
            reason: found.reason,
            message: found.message,
            last_update_time: found.last_transition_time.clone(),
            last_transition_time: found.last_transition_time,
        })
    };
    sets.new_set()
        .and_then(of)
        .or_else(|| sets.iter().find_map(of))
}

/// The condition that says why the new set could not be made.
pub(super) fn note_create_error(deployment: &mut Deployment, message: &str, now: Timestamp) {
    if spec::progress_deadline(deployment).is_some() {
        let failed = conditions::new(PROGRESSING, "False", reason::SET_CREATE_ERROR, message, now);
        conditions::set(deployment.status.get_or_insert_default(), failed);
    }
}
