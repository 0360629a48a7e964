//! Decides what one pass does for one Deployment. Pure.

use std::sync::Arc;
use std::time::Duration;

use coracle_client::control_loop::Requeue;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};

use super::conditions::{self, PROGRESSING, reason};
use super::sets::{Sets, size};
use super::{proportion, revision, rollout, spec, status};

/// What the caches show.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub deployment: Arc<Deployment>,
    /// The sets that the deployment owns or is about to adopt.
    pub sets: Vec<Arc<ReplicaSet>>,
    /// The uids of those sets which have pods that may still run.
    pub pods_left: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Plan {
    /// At most one set is new.
    pub create: Option<ReplicaSet>,
    /// Each with the state it was decided on, in the order of writing.
    pub update: Vec<(Arc<ReplicaSet>, ReplicaSet)>,
    pub delete: Vec<Arc<ReplicaSet>>,
    /// The deployment as its status and revision should be.
    pub deployment: Deployment,
    /// The deployment selects everything and is left alone: the user must hear of it.
    pub selects_all: bool,
    pub requeue: Requeue,
}

pub(super) fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let mut deployment = (*observed.deployment).clone();
    let mut sets = Sets::new(&deployment, &observed.sets);
    let mut selects_all = false;
    let mut left = None;
    if selects_everything(&deployment) {
        selects_all = true;
        let generation = deployment.metadata.generation;
        deployment
            .status
            .get_or_insert_default()
            .observed_generation = generation;
    } else if deployment.metadata.deletion_timestamp.is_some() {
        sync_revision(&mut deployment, &mut sets, now);
        status::write(&mut deployment, &sets, now);
    } else {
        note_pause(&mut deployment, now);
        sync_revision(&mut deployment, &mut sets, now);
        if spec::is_paused(&deployment) || is_scaling(&deployment, &sets) {
            scale(&deployment, &mut sets);
            if spec::is_paused(&deployment) {
                rollout::clean_up(&deployment, &mut sets);
            }
            status::write(&mut deployment, &sets, now);
        } else {
            rollout::step(&mut deployment, &mut sets, &observed.pods_left, now);
            left = status::write_rollout(&mut deployment, &sets, now);
        }
    }
    finish(deployment, sets, selects_all, left)
}

fn finish(deployment: Deployment, sets: Sets, selects_all: bool, left: Option<Duration>) -> Plan {
    let writes = sets.into_writes();
    Plan {
        create: writes.create,
        update: writes.update,
        delete: writes.delete,
        deployment,
        selects_all,
        requeue: left.map_or(Requeue::Never, Requeue::After),
    }
}

fn selects_everything(deployment: &Deployment) -> bool {
    let selector = deployment.spec.as_ref().map(|spec| &spec.selector);
    selector.is_none_or(|selector| {
        let labels = selector
            .match_labels
            .as_ref()
            .is_none_or(|labels| labels.is_empty());
        labels
            && selector
                .match_expressions
                .as_ref()
                .is_none_or(Vec::is_empty)
    })
}

/// While paused, and on resuming, no progress is expected: the deadline starts over.
fn note_pause(deployment: &mut Deployment, now: Timestamp) {
    if spec::progress_deadline(deployment).is_none() {
        return;
    }
    let paused = spec::is_paused(deployment);
    let status = deployment.status.get_or_insert_default();
    if conditions::has_reason(status, PROGRESSING, reason::TIMED_OUT) {
        return; // A lack of progress that was reported stays reported.
    }
    let noted = conditions::has_reason(status, PROGRESSING, reason::PAUSED);
    let (reason, message) = match (paused, noted) {
        (true, false) => (reason::PAUSED, "Deployment is paused"),
        (false, true) => (reason::RESUMED, "Deployment is resumed"),
        _ => return,
    };
    conditions::set(
        status,
        conditions::new(PROGRESSING, "Unknown", reason, message, now),
    );
}

/// The revision that the new set has or gets: one above those of all others.
pub(super) fn next_revision(sets: &Sets) -> i64 {
    revision::highest(sets.old().into_iter().map(|index| sets.get(index))) + 1
}

/// Brings the new set, if there is one, and the deployment's revision up to date.
fn sync_revision(deployment: &mut Deployment, sets: &mut Sets, now: Timestamp) {
    let Some(index) = sets.new_index() else {
        return;
    };
    sets.refresh(deployment, index, next_revision(sets));
    let set = sets.get(index);
    if let Some(revision) = revision::annotation(set, revision::REVISION) {
        set_revision(deployment, revision.to_owned());
    }
    let deadline = spec::progress_deadline(deployment);
    let status = deployment.status.get_or_insert_default();
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let told = conditions::get(status, PROGRESSING);
    if deadline.is_some() && told.is_none_or(|told| conditions::is_end_of_another(told, name)) {
        let message = format!("Found new replica set \"{name}\"");
        let found = conditions::new(PROGRESSING, "True", reason::FOUND_NEW_SET, message, now);
        conditions::set(status, found);
    }
}

pub(super) fn set_revision(deployment: &mut Deployment, revision: String) {
    let annotations = deployment.metadata.annotations.get_or_insert_default();
    annotations.insert(revision::REVISION.to_owned(), revision);
}

/// A change of `replicas`, told from a rollout by what was noted on the active sets.
fn is_scaling(deployment: &Deployment, sets: &Sets) -> bool {
    let replicas = spec::replicas(deployment);
    sets.active().into_iter().any(|index| {
        let noted = revision::noted_size(sets.get(index), revision::DESIRED_REPLICAS);
        noted.is_some_and(|noted| noted != replicas)
    })
}

/// Changes sizes without moving the rollout on.
fn scale(deployment: &Deployment, sets: &mut Sets) {
    let replicas = spec::replicas(deployment);
    let active = sets.active();
    match active.as_slice() {
        // With none active the new one grows, or else the youngest.
        [] => {
            if let Some(index) = sets.new_index().or_else(|| sets.old().last().copied()) {
                sets.resize_if_needed(deployment, index, replicas);
            }
        }
        [only] => {
            sets.resize_if_needed(deployment, *only, replicas);
        }
        _ if is_saturated(deployment, sets) => {
            for index in sets.active_old() {
                sets.resize_if_needed(deployment, index, 0);
            }
        }
        _ if !spec::is_recreate(deployment) => proportion::scale(deployment, sets),
        _ => {}
    }
}

/// The new set has all the pods there should be, and the old ones are left over.
fn is_saturated(deployment: &Deployment, sets: &Sets) -> bool {
    let replicas = spec::replicas(deployment);
    sets.new_set().is_some_and(|set| {
        size(set) == replicas
            && revision::noted_size(set, revision::DESIRED_REPLICAS) == Some(replicas)
            && status::available(set) == replicas
    })
}
