//! Pod templates: whether two are the same, and a name for each. Pure.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::Value;

use crate::templates::{drop_empty, fnv1a, safe_text};

/// The label that keeps the pods of two revisions apart.
pub(super) const HASH_LABEL: &str = "pod-template-hash";
/// Names are at most this long.
const NAME_LENGTH_MAX: usize = 253;

/// The oldest set with the deployment's template. More than one happens only when somebody else
/// made them, and then the choice must not change from pass to pass.
pub(super) fn find_new<'a>(
    deployment: &Deployment,
    sets: impl Iterator<Item = &'a ReplicaSet>,
) -> Option<&'a ReplicaSet> {
    let wanted = canonical(&deployment.spec.as_ref()?.template);
    let same = |set: &&ReplicaSet| {
        let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
        template.is_some_and(|template| canonical(template) == wanted)
    };
    sets.filter(same).min_by(|a, b| by_age(a, b))
}

/// Whether a set was made from the deployment's template.
pub(super) fn is_new(deployment: &Deployment, set: &ReplicaSet) -> bool {
    find_new(deployment, std::iter::once(set)).is_some()
}

/// Oldest first, then by name.
pub(super) fn by_age(a: &ReplicaSet, b: &ReplicaSet) -> std::cmp::Ordering {
    let age = |set: &ReplicaSet| set.metadata.creation_timestamp.as_ref().map(|time| time.0);
    age(a)
        .cmp(&age(b))
        .then_with(|| a.metadata.name.cmp(&b.metadata.name))
}

pub(super) fn sort_by_age(sets: &mut [Arc<ReplicaSet>]) {
    sets.sort_by(|a, b| by_age(a, b));
}

/// A template without its hash label and without the difference of empty and absent lists.
fn canonical(template: &PodTemplateSpec) -> Value {
    let mut template = template.clone();
    if let Some(meta) = &mut template.metadata {
        meta.creation_timestamp = None;
        if let Some(labels) = &mut meta.labels {
            labels.remove(HASH_LABEL);
        }
        meta.labels = meta.labels.take().filter(|labels| !labels.is_empty());
        meta.annotations = meta.annotations.take().filter(|all| !all.is_empty());
    }
    let mut value = serde_json::to_value(template).expect("typed objects serialize to JSON");
    drop_empty(&mut value);
    value
}

/// A short text that depends on the template alone, and on how often it met another's.
pub(super) fn hash(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    let mut value = canonical(template);
    // The order of keys must not depend on how the JSON library was built.
    value.sort_all_objects();
    let text = value.to_string();
    let collisions = collisions.map(i32::to_le_bytes);
    let collisions = collisions.as_ref().map_or(&[] as &[u8], |bytes| bytes);
    safe_text(fnv1a(&[text.as_bytes(), collisions]))
}

/// The name of the set with this hash: always the same, so that making it twice is harmless.
pub(super) fn set_name(deployment: &str, hash: &str) -> String {
    let room = NAME_LENGTH_MAX - 1 - hash.len();
    let mut end = deployment.len().min(room);
    while !deployment.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-{hash}", &deployment[..end])
}
