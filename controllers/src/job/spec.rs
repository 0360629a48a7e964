//! What a Job asks for. Pure.

use k8s_openapi::api::batch::v1::{Job, PodFailurePolicy, SuccessPolicy};
use k8s_openapi::api::core::v1::PodTemplateSpec;

use super::conditions;
use crate::labels::Selector;

/// The value of `spec.managedBy` that means this loop, as its absence does.
const MANAGED_HERE: &str = "kubernetes.io/job-controller";

#[derive(Debug)]
pub(super) struct Spec<'a> {
    pub selector: Selector,
    pub template: &'a PodTemplateSpec,
    pub parallelism: i32,
    pub completions: Option<i32>,
    pub indexed: bool,
    pub suspended: bool,
    pub backoff_limit: i32,
    pub backoff_limit_per_index: Option<i32>,
    pub max_failed_indexes: Option<i32>,
    pub active_deadline_seconds: Option<i64>,
    pub failure_policy: Option<&'a PodFailurePolicy>,
    pub success_policy: Option<&'a SuccessPolicy>,
    /// A pod is replaced once it has failed, not already when it is asked to stop.
    pub replaces_failed_only: bool,
}

impl<'a> Spec<'a> {
    /// `None` when there is no usable selector.
    pub(super) fn of(job: &'a Job) -> Option<Self> {
        let spec = job.spec.as_ref()?;
        let replaces_failed = spec.pod_replacement_policy.as_deref() == Some("Failed");
        let indexed = spec.completion_mode.as_deref() == Some("Indexed");
        Some(Self {
            selector: Selector::from_label_selector(spec.selector.as_ref()?)
                .filter(|selector| !selector.is_empty())?,
            template: &spec.template,
            parallelism: spec.parallelism.unwrap_or(1),
            completions: spec.completions,
            indexed,
            suspended: spec.suspend == Some(true),
            backoff_limit: spec.backoff_limit.unwrap_or(6),
            backoff_limit_per_index: spec.backoff_limit_per_index.filter(|_| indexed),
            max_failed_indexes: spec.max_failed_indexes,
            active_deadline_seconds: spec.active_deadline_seconds,
            failure_policy: spec.pod_failure_policy.as_ref(),
            success_policy: spec.success_policy.as_ref(),
            replaces_failed_only: replaces_failed || spec.pod_failure_policy.is_some(),
        })
    }

    /// As indexes are bounded; a job that has none has no bound.
    pub(super) fn index_end(&self) -> i32 {
        self.completions.unwrap_or(0)
    }

    pub(super) fn restarts_containers(&self) -> bool {
        let pod = self.template.spec.as_ref();
        pod.and_then(|pod| pod.restart_policy.as_deref()) == Some("OnFailure")
    }
}

/// Complete or Failed: nothing is left to do.
pub(super) fn is_finished(job: &Job) -> bool {
    let status = job.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref());
    let conditions = conditions.unwrap_or_default();
    conditions::is_true(conditions, conditions::COMPLETE)
        || conditions::is_true(conditions, conditions::FAILED)
}

/// Somebody else's, who also counts its pods.
pub(super) fn is_managed_elsewhere(job: &Job) -> bool {
    let manager = job
        .spec
        .as_ref()
        .and_then(|spec| spec.managed_by.as_deref());
    manager.is_some_and(|manager| manager != MANAGED_HERE)
}

pub(super) fn has_known_mode(job: &Job) -> bool {
    let mode = job
        .spec
        .as_ref()
        .and_then(|spec| spec.completion_mode.as_deref());
    matches!(mode, None | Some("NonIndexed" | "Indexed"))
}
