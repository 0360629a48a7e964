//! The history of a DaemonSet or StatefulSet: one ControllerRevision for each pod template that it
//! had, from which `kubectl rollout` shows and restores.
//!
//! Upstream's loops and ours read each other's history: two revisions are the same when their data
//! are, the data is upstream's document in upstream's bytes, and the hash is made of these bytes.
//! What decides is pure; what writes is below. The owner's loop puts them together: claim
//! (`ownership::Claims`), find, create or renumber, truncate.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_client::Client;
use coracle_client::informer::Kind;
use coracle_client::patch;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ownership::controller_reference;
use crate::refusal;
use crate::templates::{drop_empty, fnv1, safe_text};

/// The label of pods that says of which revision they are; of a DaemonSet's revisions too.
pub(crate) const HASH_LABEL: &str = "controller-revision-hash";
/// A name is at most 253 long, and upstream leaves 30 for what is put behind this.
const PREFIX_LENGTH_MAX: usize = 223;

type Revisions = [Arc<ControllerRevision>];

/// What a revision keeps: the patch that restores this template.
pub(crate) fn data_of(template: &PodTemplateSpec) -> Value {
    data_of_value(json!(template))
}

fn data_of_value(mut template: Value) -> Value {
    drop_empty(&mut template);
    template["$patch"] = json!("replace");
    let mut data = json!({"spec": {"template": template}});
    data.sort_all_objects();
    data
}

/// Whether a revision was made of this data, by whomever.
pub(crate) fn is_of(revision: &ControllerRevision, data: &Value) -> bool {
    let Some(RawExtension(kept)) = &revision.data else {
        return false;
    };
    if kept == data {
        return true;
    }
    // Older controllers wrote down nulls.
    let mut kept = kept.clone();
    drop_empty(&mut kept);
    kept == *data
}

/// Whether a revision is of this data once the server's defaults are filled in: an older server may
/// have had fewer of them.
pub(crate) fn is_of_with_defaults(revision: &ControllerRevision, data: &Value) -> bool {
    let kept = revision.data.as_ref().map(|RawExtension(data)| data);
    let kept = kept.and_then(|kept| kept.pointer("/spec/template"));
    // Read as a template first: anything may be in a revision.
    let template = kept.and_then(|kept| PodTemplateSpec::deserialize(kept).ok());
    let Some(template) = template else {
        return false;
    };
    let mut template = json!(template);
    coracle_api::pod_spec::defaults::template(&mut template);
    data_of_value(template) == *data
}

/// The hash of data, and of how often it met the name of other data.
pub(crate) fn hash(data: &Value, collisions: Option<i32>) -> String {
    let collisions = collisions
        .map(|count| count.to_string())
        .unwrap_or_default();
    safe_text(fnv1(&[bytes_of(data).as_bytes(), collisions.as_bytes()]))
}

/// The name of an owner's revision with this hash.
pub(crate) fn name(owner: &str, hash: &str) -> String {
    let mut end = owner.len().min(PREFIX_LENGTH_MAX);
    while !owner.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-{hash}", &owner[..end])
}

/// Oldest first: by number, then by age, then by name.
pub(crate) fn sort(revisions: &mut Revisions) {
    let age = |one: &ControllerRevision| one.metadata.creation_timestamp.as_ref().map(|at| at.0);
    revisions.sort_by(|a, b| {
        let by_number = a.revision.cmp(&b.revision);
        let by_age = by_number.then_with(|| age(a).cmp(&age(b)));
        by_age.then_with(|| a.metadata.name.cmp(&b.metadata.name))
    });
}

/// The number after the highest of these.
pub(crate) fn next_number(revisions: &Revisions) -> i64 {
    let highest = revisions.iter().map(|one| one.revision).max();
    highest.unwrap_or(0).max(0) + 1
}

/// The oldest of these that nobody needs, as many as there are above the limit.
pub(crate) fn surplus(
    mut old: Vec<Arc<ControllerRevision>>,
    limit: usize,
    is_live: impl Fn(&ControllerRevision) -> bool,
) -> Vec<Arc<ControllerRevision>> {
    let surplus = old.len().saturating_sub(limit);
    sort(&mut old);
    old.retain(|one| !is_live(one));
    old.truncate(surplus);
    old
}

/// A revision to be created.
pub(crate) fn revision<K: Kind>(
    owner: &K,
    name: String,
    labels: BTreeMap<String, String>,
    data: Value,
    number: i64,
) -> ControllerRevision {
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: owner.meta().namespace.clone(),
            labels: Some(labels),
            annotations: owner.meta().annotations.clone(),
            owner_references: Some(vec![controller_reference(owner)]),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(data)),
        revision: number,
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum HistoryError {
    #[error("cannot create revision {name}")]
    Create { name: String, source: kube::Error },
    #[error("cannot read revision {name}")]
    Read { name: String, source: kube::Error },
    #[error("cannot change revision {name}")]
    Change { name: String, source: kube::Error },
    #[error("cannot delete revision {name}")]
    Delete { name: String, source: kube::Error },
}

/// Creates a revision, or finds that it is there. `None` when other data has its name: then the
/// owner counts a collision, and tries another.
pub(crate) async fn create(
    client: &Client,
    revision: &ControllerRevision,
) -> Result<Option<ControllerRevision>, HistoryError> {
    let (namespace, name) = address(revision);
    let api = Api::<ControllerRevision>::namespaced(client.clone(), &namespace);
    let request = http::Request::post(api.resource_url())
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(bytes_of(&json!(revision)).into_bytes())
        .expect("the path of a resource is valid");
    match client.request(request).await {
        Ok(created) => return Ok(Some(created)),
        Err(error) if refusal::is_already_exists(&error) => {}
        Err(source) => return Err(HistoryError::Create { name, source }),
    }
    let found = api.get(&name).await;
    let found = found.map_err(|source| HistoryError::Read { name, source })?;
    let Some(RawExtension(data)) = &revision.data else {
        return Ok(None);
    };
    Ok(is_of(&found, data).then_some(found))
}

/// Makes a revision the newest, or puts labels on it; its data stays byte for byte.
pub(crate) async fn change(
    api: &Api<ControllerRevision>,
    revision: &ControllerRevision,
    mut change: Value,
) -> Result<ControllerRevision, HistoryError> {
    let (_, name) = address(revision);
    let meta = &revision.metadata;
    change["metadata"]["uid"] = json!(meta.uid);
    change["metadata"]["resourceVersion"] = json!(meta.resource_version);
    let changed = api
        .patch(&name, &PatchParams::default(), &Patch::Merge(change))
        .await;
    changed.map_err(|source| HistoryError::Change { name, source })
}

/// Deletes a revision; one that is gone is no failure.
pub(crate) async fn delete(
    api: &Api<ControllerRevision>,
    revision: &ControllerRevision,
) -> Result<(), HistoryError> {
    let (_, name) = address(revision);
    match api.delete(&name, &patch::delete_exactly(revision)).await {
        Ok(_) => Ok(()),
        Err(error) if refusal::is_not_found(&error) => Ok(()),
        Err(source) => Err(HistoryError::Delete { name, source }),
    }
}

fn address(revision: &ControllerRevision) -> (String, String) {
    let meta = &revision.metadata;
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    (text(&meta.namespace), text(&meta.name))
}

/// A document in the bytes that upstream's JSON library writes: upstream's loops compare those.
/// Keys are sorted, and what could end a script in a web page is escaped.
fn bytes_of(document: &Value) -> String {
    let mut document = document.clone();
    document.sort_all_objects();
    let mut text = String::new();
    for character in document.to_string().chars() {
        match character {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            plain => text.push(plain),
        }
    }
    text
}

#[cfg(test)]
mod tests;
