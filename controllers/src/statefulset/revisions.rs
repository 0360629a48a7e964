//! The set's ControllerRevisions: which one its template is, which one its pods come from, and
//! which ones nobody needs any more. Pure but for the two writes at the end.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use coracle_client::Client;
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::Api;
use serde_json::{Value, json};

use super::spec;
use crate::history::{self, HistoryError};

/// The label of a revision that says what its data hashes to.
const HASH_LABEL: &str = "controller.kubernetes.io/hash";
/// How many names are tried for one revision. More collisions than one are not to be expected.
const COLLISIONS_MAX: usize = 10;

/// What is to be done for the set's template to be a revision, and the newest.
#[derive(Debug)]
pub(super) enum Newest {
    Is(Arc<ControllerRevision>),
    /// The template is that of an older revision again.
    Renumber(Arc<ControllerRevision>, i64),
    Create(i64),
}

/// `revisions` are sorted, oldest first.
pub(super) fn newest(revisions: &[Arc<ControllerRevision>], data: &Value) -> Newest {
    let next = history::next_number(revisions);
    let same = revisions.iter().rfind(|one| history::is_of(one, data));
    match (same, revisions.last()) {
        (Some(same), Some(last)) if Arc::ptr_eq(same, last) => Newest::Is(same.clone()),
        (Some(same), _) => Newest::Renumber(same.clone(), next),
        (None, Some(last)) if history::is_of_with_defaults(last, data) => Newest::Is(last.clone()),
        (None, _) => Newest::Create(next),
    }
}

/// The revision that the status names, if it is still there.
pub(super) fn current(
    set: &StatefulSet,
    revisions: &[Arc<ControllerRevision>],
) -> Option<Arc<ControllerRevision>> {
    let named = set.status.as_ref()?.current_revision.as_ref()?;
    let is_named = |one: &&Arc<ControllerRevision>| one.metadata.name.as_ref() == Some(named);
    revisions.iter().find(is_named).cloned()
}

/// The template that a revision keeps; the set's own if it cannot be read.
pub(super) fn template<'a>(
    revision: &ControllerRevision,
    spec: &'a StatefulSetSpec,
) -> Cow<'a, PodTemplateSpec> {
    let data = revision.data.as_ref().map(|RawExtension(data)| data);
    let kept = data.and_then(|data| data.pointer("/spec/template"));
    let template = kept.and_then(|kept| serde_json::from_value(kept.clone()).ok());
    template.map_or(Cow::Borrowed(&spec.template), Cow::Owned)
}

/// Those that nobody needs, as many as there are above the limit, oldest first.
pub(super) fn surplus(
    spec: &StatefulSetSpec,
    revisions: &[Arc<ControllerRevision>],
    live: &BTreeSet<&str>,
) -> Vec<Arc<ControllerRevision>> {
    let Ok(limit) = usize::try_from(spec::history_limit(spec)) else {
        return Vec::new(); // A negative limit is none.
    };
    let is_live = |one: &ControllerRevision| {
        let name = one.metadata.name.as_deref();
        name.is_some_and(|name| live.contains(name))
    };
    let old: Vec<_> = revisions.iter().filter(|one| !is_live(one)).collect();
    let surplus = old.len().saturating_sub(limit);
    old.into_iter().take(surplus).cloned().collect()
}

/// Makes the revision of the set's template, and counts the names that others had already; `None`
/// if all that were tried are taken.
pub(super) async fn create(
    client: &Client,
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    data: &Value,
    number: i64,
) -> Result<Option<(ControllerRevision, i32)>, HistoryError> {
    let known = set
        .status
        .as_ref()
        .and_then(|status| status.collision_count);
    let mut collisions = known.unwrap_or(0);
    let meta = spec.template.metadata.as_ref();
    let mut labels = meta
        .and_then(|meta| meta.labels.clone())
        .unwrap_or_default();
    labels.insert(HASH_LABEL.to_owned(), history::hash(data, Some(collisions)));
    let owner = set.metadata.name.as_deref().unwrap_or_default();
    for _ in 0..COLLISIONS_MAX {
        let name = history::name(owner, &history::hash(data, Some(collisions)));
        let wanted = history::revision(set, name, labels.clone(), data.clone(), number);
        if let Some(made) = history::create(client, &wanted).await? {
            return Ok(Some((made, collisions)));
        }
        collisions = collisions.saturating_add(1);
    }
    Ok(None)
}

/// Makes an older revision the newest again.
pub(super) async fn renumber(
    api: &Api<ControllerRevision>,
    revision: &ControllerRevision,
    number: i64,
) -> Result<ControllerRevision, HistoryError> {
    history::change(api, revision, json!({ "revision": number })).await
}
