//! Which changes may change what is used, beside what admission has charged.

use coracle_api::quota::Quota;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};

/// True when a quota limits other things than before, or its status is not complete: charges
/// change nothing but amounts.
pub(super) fn quota_changed(old: &Quota, new: &Quota) -> bool {
    old.spec_hard != new.spec_hard
        || new.hard != new.spec_hard
        || new
            .hard
            .names()
            .any(|name| !new.used.has(name) && old.used.has(name))
}

/// True when a pod has ended, is to end at some time or no longer, or has other resources than it
/// had: what it frees by that, nobody has taken off.
pub(super) fn pod_changed(old: &Pod, new: &Pod) -> bool {
    let has_ended = |pod: &Pod| {
        let phase = pod
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        matches!(phase, Some("Failed" | "Succeeded"))
    };
    let deadline = |pod: &Pod| {
        let seconds = pod
            .spec
            .as_ref()
            .and_then(|spec| spec.active_deadline_seconds);
        seconds.is_some_and(|seconds| seconds >= 0)
    };
    let deletes = |pod: &Pod| {
        let meta = &pod.metadata;
        (
            meta.deletion_timestamp.is_some(),
            meta.deletion_grace_period_seconds,
        )
    };
    has_ended(old) != has_ended(new)
        || deadline(old) != deadline(new)
        || deletes(old) != deletes(new)
        || resources_changed(old.status.as_ref(), new.status.as_ref())
}

fn resources_changed(old: Option<&PodStatus>, new: Option<&PodStatus>) -> bool {
    let all = |status: Option<&PodStatus>| -> Vec<ContainerStatus> {
        let lists = status.map(|one| [&one.container_statuses, &one.init_container_statuses]);
        let lists = lists.into_iter().flatten().filter_map(Option::as_ref);
        lists.flatten().cloned().collect()
    };
    let infeasible = |status: Option<&PodStatus>| {
        let conditions = status.and_then(|status| status.conditions.as_ref());
        conditions.into_iter().flatten().any(|condition| {
            condition.type_ == "PodResizePending"
                && condition.reason.as_deref() == Some("Infeasible")
        })
    };
    let before = all(old);
    let differs = |status: &ContainerStatus| {
        let known = before.iter().find(|known| known.name == status.name);
        known.is_some_and(|known| {
            known.resources != status.resources
                || known.allocated_resources != status.allocated_resources
        })
    };
    infeasible(old) != infeasible(new) || all(new).iter().any(differs)
}
