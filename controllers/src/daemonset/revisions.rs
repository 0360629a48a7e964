//! The history of one DaemonSet: finds the revision of its present template, or makes it.

use std::collections::HashSet;
use std::sync::Arc;

use coracle_client::patch;
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::execute::ReconcileError;
use super::spec::Spec;
use super::{Controller, ObjectKey};
use crate::history::{self, HASH_LABEL, HistoryError};
use crate::ownership::{self, Claims};
use crate::refusal;

pub(super) struct History {
    /// The label of pods of the present revision.
    pub hash: String,
    pub old: Vec<Arc<ControllerRevision>>,
}

impl Controller {
    /// `None` when something had to be written first that calls another pass.
    pub(super) async fn history(
        &self,
        key: &ObjectKey,
        set: &Arc<DaemonSet>,
        spec: &Spec<'_>,
    ) -> Result<Option<History>, ReconcileError> {
        let api = Api::<ControllerRevision>::namespaced(self.client.clone(), &key.namespace);
        let sets = Api::<DaemonSet>::namespaced(self.client.clone(), &key.namespace);
        let uid = set.metadata.uid.as_deref().unwrap_or_default();
        let known = ownership::owned_or_orphaned(&self.revisions, uid, &key.namespace);
        let claims = Claims::of(&set.metadata, &spec.selector, known);
        let (adopt, release) = (&claims.adopt, &claims.release);
        ownership::execute(&sets, set.as_ref(), &api, adopt, release).await?;
        let data = history::data_of(spec.template);
        let (mut current, mut old) = (Vec::new(), Vec::new());
        for revision in claims.owned {
            let revision = labeled(&api, revision).await?;
            if history::is_of(&revision, &data) {
                current.push(revision);
            } else {
                old.push(revision);
            }
        }
        let number = history::next_number(&old);
        history::sort(&mut current);
        let hash = match current.pop() {
            None => match self.snapshot(&sets, set, spec, data, number).await? {
                Some(hash) => hash,
                None => return Ok(None),
            },
            Some(newest) if current.is_empty() => {
                if newest.revision < number {
                    history::change(&api, &newest, json!({"revision": number})).await?;
                }
                hash_of(&newest)
            }
            Some(newest) => {
                let same = current.iter().map(|same| hash_of(same)).collect();
                self.merge(key, set, spec, &hash_of(&newest), same).await?;
                for same in current {
                    history::delete(&api, &same).await?;
                }
                return Ok(None);
            }
        };
        Ok(Some(History { hash, old }))
    }

    /// Records the present template. `None` when another template had the name: then the
    /// collision is counted, and the next pass finds another.
    async fn snapshot(
        &self,
        sets: &Api<DaemonSet>,
        set: &Arc<DaemonSet>,
        spec: &Spec<'_>,
        data: Value,
        number: i64,
    ) -> Result<Option<String>, ReconcileError> {
        let collisions = set
            .status
            .as_ref()
            .and_then(|status| status.collision_count);
        let hash = history::hash(&data, collisions);
        let meta = spec.template.metadata.as_ref();
        let mut labels = meta
            .and_then(|meta| meta.labels.clone())
            .unwrap_or_default();
        labels.insert(HASH_LABEL.to_owned(), hash.clone());
        let owner = set.metadata.name.as_deref().unwrap_or_default();
        let name = history::name(owner, &hash);
        let revision = history::revision(set.as_ref(), name, labels, data, number);
        if let Some(made) = history::create(&self.client, &revision).await? {
            return Ok(Some(hash_of(&made)));
        }
        let mut counted = (**set).clone();
        let status = counted.status.get_or_insert_default();
        status.collision_count = Some(collisions.unwrap_or(0) + 1);
        let written = patch::replace_status(sets, &counted).await;
        self.own_writes.ended(set.as_ref(), &written);
        written.map_err(ReconcileError::Status)?;
        Ok(None)
    }

    /// Several revisions are of the present template: the pods of all of them are the newest's.
    /// Those of other templates stay what they are, and are updated.
    async fn merge(
        &self,
        key: &ObjectKey,
        set: &DaemonSet,
        spec: &Spec<'_>,
        hash: &str,
        same: HashSet<String>,
    ) -> Result<(), ReconcileError> {
        let pods = Api::<Pod>::namespaced(self.client.clone(), &key.namespace);
        for pod in self.claims(key, set, spec).owned {
            let is_same = |one: &str| one != hash && same.contains(one);
            if !pod_hash(&pod).is_some_and(is_same) {
                continue;
            }
            let label = json!({"metadata": {
                "uid": pod.metadata.uid, "labels": {HASH_LABEL: hash},
            }});
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            let patched = pods
                .patch(name, &PatchParams::default(), &Patch::Merge(label))
                .await;
            match patched {
                Ok(_) => {}
                Err(error) if refusal::is_not_found(&error) => {}
                Err(error) => return Err(ReconcileError::Relabel(error)),
            }
        }
        Ok(())
    }

    /// Throws away the oldest revisions above the limit that no pod is of.
    pub(super) async fn truncate(
        &self,
        key: &ObjectKey,
        old: Vec<Arc<ControllerRevision>>,
        pods: &[Arc<Pod>],
        limit: usize,
    ) -> Result<(), ReconcileError> {
        let api = Api::<ControllerRevision>::namespaced(self.client.clone(), &key.namespace);
        let live: HashSet<&str> = pods.iter().filter_map(|pod| pod_hash(pod)).collect();
        let is_live = |revision: &ControllerRevision| live.contains(hash_of(revision).as_str());
        for revision in history::surplus(old, limit, is_live) {
            history::delete(&api, &revision).await?;
        }
        Ok(())
    }
}

/// A revision that somebody made without the label is known by its name.
async fn labeled(
    api: &Api<ControllerRevision>,
    revision: Arc<ControllerRevision>,
) -> Result<Arc<ControllerRevision>, HistoryError> {
    if !hash_of(&revision).is_empty() {
        return Ok(revision);
    }
    let label = json!({"metadata": {"labels": {HASH_LABEL: revision.metadata.name}}});
    history::change(api, &revision, label).await.map(Arc::new)
}

fn hash_of(revision: &ControllerRevision) -> String {
    let labels = revision.metadata.labels.as_ref();
    let hash = labels.and_then(|labels| labels.get(HASH_LABEL));
    hash.cloned().unwrap_or_default()
}

fn pod_hash(pod: &Pod) -> Option<&str> {
    let labels = pod.metadata.labels.as_ref()?;
    labels.get(HASH_LABEL).map(String::as_str)
}
