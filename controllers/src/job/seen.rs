//! One pod of a job, as a pass sees it. Pure.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::spec::Spec;
use crate::pods;

/// Keeps a finished pod until the job's status has counted it.
pub(super) const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// Annotation and label alike.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
pub(super) const INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
pub(super) const INDEX_IGNORED_FAILURES: &str =
    "batch.kubernetes.io/job-index-ignored-failure-count";

#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub pod: Arc<Pod>,
    pub index: Option<i32>,
    /// It is not counted yet: it has the finalizer, and nobody is known to have removed it.
    pub tracked: bool,
    pub failed: bool,
}

impl Seen {
    pub(super) fn of(pod: Arc<Pod>, spec: &Spec<'_>, tracked: bool) -> Self {
        // Who is deleted may never get to say that it failed.
        let deleted = pods::is_deleting(&pod) && pods::phase(&pod) != "Succeeded";
        Self {
            index: index(&pod),
            tracked,
            failed: pods::phase(&pod) == "Failed" || (deleted && !spec.replaces_failed_only),
            pod,
        }
    }

    pub(super) fn uid(&self) -> &str {
        uid(&self.pod)
    }

    pub(super) fn succeeded(&self) -> bool {
        pods::phase(&self.pod) == "Succeeded"
    }

    pub(super) fn is_active(&self) -> bool {
        pods::is_active(&self.pod)
    }

    /// Counts for the job; a pod of an index that there is not does not.
    pub(super) fn is_valid(&self, spec: &Spec<'_>) -> bool {
        !spec.indexed || self.valid_index(spec).is_some()
    }

    pub(super) fn valid_index(&self, spec: &Spec<'_>) -> Option<i32> {
        self.index.filter(|index| *index < spec.index_end())
    }
}

pub(super) fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

pub(super) fn has_finalizer(pod: &Pod) -> bool {
    let finalizers = pod.metadata.finalizers.as_deref().unwrap_or_default();
    finalizers.iter().any(|one| one == FINALIZER)
}

fn annotation<'a>(meta: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    let value = meta.annotations.as_ref()?.get(name)?;
    Some(value)
}

fn number(pod: &Pod, name: &str) -> Option<i32> {
    let text = annotation(&pod.metadata, name)?;
    text.parse().ok().filter(|number| *number >= 0)
}

fn index(pod: &Pod) -> Option<i32> {
    number(pod, INDEX)
}

/// How often the pod's index had failed before the pod.
pub(super) fn index_failures(pod: &Pod) -> i32 {
    number(pod, INDEX_FAILURES).unwrap_or(0)
}

/// How often it had failed in ways that the policy ignores.
pub(super) fn index_ignored_failures(pod: &Pod) -> i32 {
    number(pod, INDEX_IGNORED_FAILURES).unwrap_or(0)
}

/// Both together.
pub(super) fn index_all_failures(pod: &Pod) -> i32 {
    index_failures(pod).saturating_add(index_ignored_failures(pod))
}
