//! Revisions: which set is which, told in annotations that `kubectl rollout` reads. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
pub(super) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
/// Annotations that say something about the object they are on, not about the template.
const NOT_COPIED: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
];
/// Upstream's bound of the history annotation, some hundreds of revisions.
const HISTORY_LENGTH_MAX: usize = 2000;

/// Zero when there is none, `None` when somebody wrote something else there.
pub(super) fn of(set: &ReplicaSet) -> Option<i64> {
    match annotation(set, REVISION) {
        None => Some(0),
        Some(text) => text.parse().ok(),
    }
}

pub(super) fn annotation<'a>(set: &'a ReplicaSet, name: &str) -> Option<&'a str> {
    set.metadata
        .annotations
        .as_ref()?
        .get(name)
        .map(String::as_str)
}

/// The highest revision of these sets.
pub(super) fn highest<'a>(sets: impl Iterator<Item = &'a ReplicaSet>) -> i64 {
    sets.filter_map(of).max().unwrap_or(0).max(0)
}

/// Brings the annotations of the newest set up to date: the deployment's own are copied, and the
/// revision rises above those of all others. A set that is rolled back to remembers which
/// revisions it was.
pub(super) fn annotate(deployment: &Deployment, set: &mut ReplicaSet, revision: i64) {
    let annotations = set.metadata.annotations.get_or_insert_default();
    for (name, value) in deployment.metadata.annotations.iter().flatten() {
        if !NOT_COPIED.contains(&name.as_str()) {
            annotations.insert(name.clone(), value.clone());
        }
    }
    let old = annotations.get(REVISION).cloned();
    let old_number = match old.as_deref() {
        None | Some("") => 0,
        Some(text) => match text.parse::<i64>() {
            Ok(number) => number,
            Err(_) => return, // Somebody else's word: left alone.
        },
    };
    if old_number >= revision {
        return;
    }
    annotations.insert(REVISION.to_owned(), revision.to_string());
    if let Some(old) = old {
        remember(annotations, &old);
    }
}

fn remember(annotations: &mut BTreeMap<String, String>, revision: &str) {
    let history = annotations
        .get(REVISION_HISTORY)
        .map(String::as_str)
        .unwrap_or_default();
    let mut revisions: Vec<&str> = history
        .split(',')
        .filter(|revision| !revision.is_empty())
        .collect();
    revisions.push(revision);
    let length = |revisions: &[&str]| revisions.iter().map(|one| one.len() + 1).sum::<usize>() - 1;
    let mut kept = revisions.as_slice();
    while kept.len() > 1 && length(kept) > HISTORY_LENGTH_MAX {
        kept = &kept[1..];
    }
    let text = kept.join(",");
    annotations.insert(REVISION_HISTORY.to_owned(), text);
}

/// Notes on a set how large the deployment is and may be, by which a later change of size is
/// told from a rollout.
pub(super) fn note_sizes(set: &mut ReplicaSet, desired: i32, max: i32) {
    let annotations = set.metadata.annotations.get_or_insert_default();
    annotations.insert(DESIRED_REPLICAS.to_owned(), desired.to_string());
    annotations.insert(MAX_REPLICAS.to_owned(), max.to_string());
}

/// A size that was noted, if it is one.
pub(super) fn noted_size(set: &ReplicaSet, name: &str) -> Option<i32> {
    annotation(set, name)?
        .parse()
        .ok()
        .filter(|size| *size >= 0)
}
