//! Which changes may change what is used, beside what admission has charged.

use std::collections::BTreeMap;

use coracle_api::amounts::Amounts;
use coracle_api::quantity::Quantity;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus, ResourceQuota};
use k8s_openapi::apimachinery::pkg::api::resource;

type Listed = BTreeMap<String, resource::Quantity>;

/// True when a quota limits other things than before, or its status is not complete: charges
/// change nothing but amounts.
pub(super) fn quota_changed(old: &ResourceQuota, new: &ResourceQuota) -> bool {
    let wanted = amounts(spec_hard(new));
    let (had, used) = (status_used(old), status_used(new));
    let mut in_force = status_hard(new).into_iter().flat_map(BTreeMap::keys);
    amounts(spec_hard(old)) != wanted
        || amounts(status_hard(new)) != wanted
        || in_force.any(|name| !has(used, name) && has(had, name))
}

fn spec_hard(quota: &ResourceQuota) -> Option<&Listed> {
    quota.spec.as_ref()?.hard.as_ref()
}

fn status_hard(quota: &ResourceQuota) -> Option<&Listed> {
    quota.status.as_ref()?.hard.as_ref()
}

fn status_used(quota: &ResourceQuota) -> Option<&Listed> {
    quota.status.as_ref()?.used.as_ref()
}

fn has(list: Option<&Listed>, name: &str) -> bool {
    list.is_some_and(|list| list.contains_key(name))
}

fn amounts(list: Option<&Listed>) -> Amounts {
    let entries = list.into_iter().flatten();
    entries
        .filter_map(|(name, amount)| Some((name.clone(), Quantity::parse(&amount.0).ok()?)))
        .collect()
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
    let infeasible = |status: Option<&PodStatus>| {
        let conditions = status.and_then(|status| status.conditions.as_ref());
        conditions.into_iter().flatten().any(|condition| {
            condition.type_ == "PodResizePending"
                && condition.reason.as_deref() == Some("Infeasible")
        })
    };
    let differs = |status: &ContainerStatus| {
        let known = containers(old).find(|known| known.name == status.name);
        known.is_some_and(|known| {
            known.resources != status.resources
                || known.allocated_resources != status.allocated_resources
        })
    };
    infeasible(old) != infeasible(new) || containers(new).any(differs)
}

fn containers(status: Option<&PodStatus>) -> impl Iterator<Item = &ContainerStatus> {
    let lists = status.map(|one| [&one.container_statuses, &one.init_container_statuses]);
    let lists = lists.into_iter().flatten().filter_map(Option::as_ref);
    lists.flatten()
}
