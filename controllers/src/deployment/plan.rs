//! Decides what one pass does for one Deployment. Pure.
//!
//! Works on copies of the sets; what differs from the cache at the end is what gets written.

use std::sync::Arc;
use std::time::Duration;

use coracle_client::control_loop::Requeue;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::conditions::{self, PROGRESSING, reason};
use super::{proportion, revision, rollout, spec, status, template};
use crate::ownership::controller_reference;

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

/// The working copies. Indices stay valid for a whole pass.
pub(super) struct Sets {
    all: Vec<Slot>,
    new: Option<usize>,
    delete: Vec<usize>,
}

struct Slot {
    /// As the cache has it; `None` for the set that is to be created.
    cached: Option<Arc<ReplicaSet>>,
    wanted: ReplicaSet,
}

/// The number of pods that a set is asked to keep.
pub(super) fn size(set: &ReplicaSet) -> i32 {
    set.spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1)
}

impl Sets {
    fn new(deployment: &Deployment, sets: &[Arc<ReplicaSet>]) -> Self {
        let mut sets = sets.to_vec();
        template::sort_by_age(&mut sets);
        let new = template::find_new(deployment, sets.iter().map(Arc::as_ref));
        let new = new.and_then(|new| sets.iter().position(|set| std::ptr::eq(&**set, new)));
        let slot = |set: Arc<ReplicaSet>| Slot {
            wanted: (*set).clone(),
            cached: Some(set),
        };
        Self {
            all: sets.into_iter().map(slot).collect(),
            new,
            delete: Vec::new(),
        }
    }

    pub(super) fn get(&self, index: usize) -> &ReplicaSet {
        &self.all[index].wanted
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ReplicaSet> {
        self.all.iter().map(|slot| &slot.wanted)
    }

    /// The set with the deployment's template.
    pub(super) fn new_set(&self) -> Option<&ReplicaSet> {
        self.new.map(|index| self.get(index))
    }

    pub(super) fn new_index(&self) -> Option<usize> {
        self.new
    }

    /// All but the new one, oldest first.
    pub(super) fn old(&self) -> Vec<usize> {
        (0..self.all.len())
            .filter(|index| Some(*index) != self.new)
            .collect()
    }

    /// Those that are asked to keep pods, oldest first.
    pub(super) fn active(&self) -> Vec<usize> {
        (0..self.all.len())
            .filter(|index| size(self.get(*index)) > 0)
            .collect()
    }

    pub(super) fn active_old(&self) -> Vec<usize> {
        self.old()
            .into_iter()
            .filter(|index| size(self.get(*index)) > 0)
            .collect()
    }

    pub(super) fn total_size(&self) -> i32 {
        self.iter().map(size).sum()
    }

    /// Gives a set a size, and notes on it how large the deployment is.
    pub(super) fn resize(&mut self, deployment: &Deployment, index: usize, replicas: i32) {
        let set = &mut self.all[index].wanted;
        set.spec.get_or_insert_default().replicas = Some(replicas);
        let desired = spec::replicas(deployment);
        revision::note_sizes(set, desired, desired + spec::max_surge(deployment));
    }

    /// The same, only if the size differs. True when it does.
    pub(super) fn resize_if_needed(
        &mut self,
        deployment: &Deployment,
        index: usize,
        replicas: i32,
    ) -> bool {
        if size(self.get(index)) == replicas {
            return false;
        }
        self.resize(deployment, index, replicas);
        true
    }

    pub(super) fn delete(&mut self, index: usize) {
        self.delete.push(index);
    }

    /// Adds a set for the deployment's template, with no pods yet.
    pub(super) fn add_new(&mut self, deployment: &Deployment, revision: i64) -> usize {
        let mut set = new_set(deployment);
        revision::annotate(deployment, &mut set, revision);
        self.all.push(Slot {
            cached: None,
            wanted: set,
        });
        let index = self.all.len() - 1;
        self.new = Some(index);
        index
    }
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
    let delete = sets
        .delete
        .iter()
        .filter_map(|index| sets.all[*index].cached.clone())
        .collect();
    let (mut create, mut update) = (None, Vec::new());
    for (index, slot) in sets.all.into_iter().enumerate() {
        match slot.cached {
            None => create = Some(slot.wanted),
            Some(cached) if *cached != slot.wanted && !sets.delete.contains(&index) => {
                update.push((cached, slot.wanted));
            }
            Some(_) => {}
        }
    }
    let requeue = left.map_or(Requeue::Never, Requeue::After);
    Plan {
        create,
        update,
        delete,
        deployment,
        selects_all,
        requeue,
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
    let Some(index) = sets.new else { return };
    let next = next_revision(sets);
    let set = &mut sets.all[index].wanted;
    revision::annotate(deployment, set, next);
    let min_ready_seconds = spec::min_ready_seconds(deployment);
    let set_spec = set.spec.get_or_insert_default();
    if set_spec.min_ready_seconds.unwrap_or(0) != min_ready_seconds.unwrap_or(0) {
        set_spec.min_ready_seconds = min_ready_seconds;
    }
    let name = set.metadata.name.clone().unwrap_or_default();
    if let Some(revision) = revision::annotation(set, revision::REVISION) {
        set_revision(deployment, revision.to_owned());
    }
    let deadline = spec::progress_deadline(deployment);
    let status = deployment.status.get_or_insert_default();
    if deadline.is_some() && conditions::get(status, PROGRESSING).is_none() {
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
            if let Some(index) = sets.new.or_else(|| sets.old().last().copied()) {
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

fn new_set(deployment: &Deployment) -> ReplicaSet {
    let spec = deployment.spec.clone().unwrap_or_default();
    let collisions = deployment
        .status
        .as_ref()
        .and_then(|status| status.collision_count);
    let hash = template::hash(&spec.template, collisions);
    let mut pods = spec.template;
    let labels = pods
        .metadata
        .get_or_insert_default()
        .labels
        .get_or_insert_default();
    labels.insert(template::HASH_LABEL.to_owned(), hash.clone());
    let labels = labels.clone();
    let mut selector: LabelSelector = spec.selector;
    let match_labels = selector.match_labels.get_or_insert_default();
    match_labels.insert(template::HASH_LABEL.to_owned(), hash.clone());
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(template::set_name(name, &hash)),
            namespace: deployment.metadata.namespace.clone(),
            labels: Some(labels),
            owner_references: Some(vec![controller_reference(deployment)]),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            replicas: Some(0),
            min_ready_seconds: spec.min_ready_seconds,
            selector,
            template: Some(pods),
        }),
        status: None,
    }
}
