//! One step of a rollout: more of the new, less of the old. Pure.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};

use super::conditions::{self, PROGRESSING, reason};
use super::plan;
use super::sets::{Sets, size};
use super::{revision, spec, status};

/// Moves the rollout on by what the strategy allows now. Each step is followed by a look at what
/// became of it: growing and shrinking never happen in one pass.
pub(super) fn step(
    deployment: &mut Deployment,
    sets: &mut Sets,
    pods_left: &[String],
    now: Timestamp,
) {
    let moved = match spec::is_recreate(deployment) {
        true => recreate(deployment, sets, pods_left, now),
        false => rolling(deployment, sets, now),
    };
    let complete = deployment
        .status
        .as_ref()
        .is_some_and(|status| is_complete(deployment, status));
    if !moved && complete {
        clean_up(deployment, sets);
    }
}

/// All pods are new and available, and there are no others.
pub(super) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let replicas = spec::replicas(deployment);
    let all = |count: Option<i32>| count.unwrap_or(0) == replicas;
    all(status.updated_replicas)
        && all(status.replicas)
        && all(status.available_replicas)
        && status.observed_generation >= deployment.metadata.generation
}

fn rolling(deployment: &mut Deployment, sets: &mut Sets, now: Timestamp) -> bool {
    let index = ensure_new(deployment, sets, now);
    let created = sets.get(index).metadata.uid.is_none();
    let replicas = spec::replicas(deployment);
    let next = match size(sets.get(index)) {
        size if size > replicas => replicas,
        _ => grown(deployment, sets, index),
    };
    if sets.resize_if_needed(deployment, index, next) && !created {
        return true;
    }
    shrink_old(deployment, sets, index)
}

/// The size that the new set may grow to.
fn grown(deployment: &Deployment, sets: &Sets, index: usize) -> i32 {
    let (replicas, current) = (spec::replicas(deployment), size(sets.get(index)));
    let room = replicas + spec::max_surge(deployment) - sets.total_size();
    if room <= 0 {
        current
    } else {
        current + room.min(replicas - current)
    }
}

/// Takes away old pods: those that are not available at once, the others as far as enough
/// are available without them.
fn shrink_old(deployment: &Deployment, sets: &mut Sets, new: usize) -> bool {
    let min_available = spec::replicas(deployment) - spec::max_unavailable(deployment);
    let new_set = sets.get(new);
    let new_unavailable = size(new_set) - status::available(new_set);
    let mut budget = sets.total_size() - min_available - new_unavailable;
    if budget <= 0 {
        return false;
    }
    let mut moved = false;
    for index in sets.active_old() {
        let (current, available) = (size(sets.get(index)), status::available(sets.get(index)));
        let unhealthy = (current - available).min(budget);
        if unhealthy > 0 {
            moved |= sets.resize_if_needed(deployment, index, current - unhealthy);
            budget -= unhealthy;
        }
    }
    moved | shrink_healthy(deployment, sets, min_available)
}

fn shrink_healthy(deployment: &Deployment, sets: &mut Sets, min_available: i32) -> bool {
    let mut spare = sets.iter().map(status::available).sum::<i32>() - min_available;
    let mut moved = false;
    for index in sets.active_old() {
        if spare <= 0 {
            break;
        }
        let current = size(sets.get(index));
        let taken = current.min(spare);
        moved |= sets.resize_if_needed(deployment, index, current - taken);
        spare -= taken;
    }
    moved
}

/// All the old pods go before the first new one comes.
fn recreate(
    deployment: &mut Deployment,
    sets: &mut Sets,
    pods_left: &[String],
    now: Timestamp,
) -> bool {
    let mut moved = false;
    for index in sets.active_old() {
        moved |= sets.resize_if_needed(deployment, index, 0);
    }
    if moved || old_pods_run(sets, pods_left) {
        return true;
    }
    let index = ensure_new(deployment, sets, now);
    sets.resize_if_needed(deployment, index, spec::replicas(deployment));
    false
}

fn old_pods_run(sets: &Sets, pods_left: &[String]) -> bool {
    sets.old().into_iter().any(|index| {
        let set = sets.get(index);
        let counted = set
            .status
            .as_ref()
            .is_some_and(|status| status.replicas > 0);
        let seen = set
            .metadata
            .uid
            .as_ref()
            .is_some_and(|uid| pods_left.contains(uid));
        counted || seen
    })
}

/// The new set, made if there is none.
fn ensure_new(deployment: &mut Deployment, sets: &mut Sets, now: Timestamp) -> usize {
    if let Some(index) = sets.new_index() {
        return index;
    }
    let revision = plan::next_revision(sets);
    let index = sets.add_new(deployment, revision);
    // Noted from the start, whatever size it gets.
    sets.resize(deployment, index, 0);
    plan::set_revision(deployment, revision.to_string());
    if spec::progress_deadline(deployment).is_some() {
        let name = sets.get(index).metadata.name.clone().unwrap_or_default();
        let message = format!("Created new replica set \"{name}\"");
        let created = conditions::new(PROGRESSING, "True", reason::NEW_SET_CREATED, message, now);
        conditions::set(deployment.status.get_or_insert_default(), created);
    }
    index
}

/// Deletes the oldest revisions beyond the limit, as far as they are empty and settled.
pub(super) fn clean_up(deployment: &Deployment, sets: &mut Sets) {
    let Some(limit) = spec::history_limit(deployment) else {
        return;
    };
    let mut old = sets.old();
    old.retain(|index| sets.get(*index).metadata.deletion_timestamp.is_none());
    let surplus = old.len().saturating_sub(limit);
    // Stable: sets of the same revision stay in the order of their age.
    old.sort_by_key(|index| revision::of(sets.get(*index)).unwrap_or(0));
    for index in old.into_iter().take(surplus) {
        let set = sets.get(index);
        let status = set.status.clone().unwrap_or_default();
        let settled = status.observed_generation >= set.metadata.generation;
        if size(set) == 0 && status.replicas == 0 && settled {
            sets.delete(index);
        }
    }
}
