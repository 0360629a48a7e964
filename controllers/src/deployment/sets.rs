//! The sets of one Deployment during one pass. Pure.
//!
//! A pass works on copies; what differs from the cache at the end is what gets written.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::{revision, spec, template};
use crate::ownership::controller_reference;

/// The working copies. Indices stay valid for a whole pass.
pub(super) struct Sets {
    all: Vec<Slot>,
    new: Option<usize>,
    delete: Vec<usize>,
}

/// What has to be written.
#[derive(Debug, Default)]
pub(super) struct Writes {
    /// At most one set is new.
    pub create: Option<ReplicaSet>,
    /// Each with the state it was decided on, oldest first.
    pub update: Vec<(Arc<ReplicaSet>, ReplicaSet)>,
    pub delete: Vec<Arc<ReplicaSet>>,
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
    pub(super) fn new(deployment: &Deployment, sets: &[Arc<ReplicaSet>]) -> Self {
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

    /// Brings what a set carries of its deployment up to date.
    pub(super) fn refresh(&mut self, deployment: &Deployment, index: usize, revision: i64) {
        let set = &mut self.all[index].wanted;
        revision::annotate(deployment, set, revision);
        let min_ready_seconds = spec::min_ready_seconds(deployment);
        let set_spec = set.spec.get_or_insert_default();
        if set_spec.min_ready_seconds.unwrap_or(0) != min_ready_seconds.unwrap_or(0) {
            set_spec.min_ready_seconds = min_ready_seconds;
        }
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

    /// What differs from the cache.
    pub(super) fn into_writes(self) -> Writes {
        let mut writes = Writes::default();
        for (index, slot) in self.all.into_iter().enumerate() {
            match slot.cached {
                None => writes.create = Some(slot.wanted),
                Some(cached) if self.delete.contains(&index) => writes.delete.push(cached),
                Some(cached) if *cached != slot.wanted => {
                    writes.update.push((cached, slot.wanted));
                }
                Some(_) => {}
            }
        }
        writes
    }
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
