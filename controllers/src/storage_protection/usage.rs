//! Who uses which claim, volume and class. Pure.

use coracle_client::pod_claims::{made, named, volumes};
use k8s_openapi::api::core::v1::{ContainerStatus, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// True when there is something to do: a finalizer to be given, or one that may be taken away.
pub(super) fn is_open(meta: &ObjectMeta, finalizer: &str) -> bool {
    let mut finalizers = meta.finalizers.iter().flatten();
    let has = finalizers.any(|own| own == finalizer);
    has == meta.deletion_timestamp.is_some()
}

/// A pod that may keep a claim from going: one that is on a node and has not ended.
pub(super) fn may_hold(pod: &Pod) -> bool {
    is_on_node(pod) && !has_ended(pod)
}

/// Also true for a pod that is being deleted and of which nothing runs: something else may keep it,
/// perhaps until its claim is gone.
fn has_ended(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    let lists = status.map(|status| {
        [
            &status.init_container_statuses,
            &status.container_statuses,
            &status.ephemeral_container_statuses,
        ]
    });
    let mut containers = lists.into_iter().flatten().flatten().flatten();
    let runs = |container: &ContainerStatus| {
        let state = container.state.as_ref();
        state.is_none_or(|state| state.terminated.is_none() && state.waiting.is_none())
    };
    matches!(phase, Some("Succeeded" | "Failed"))
        || pod.metadata.deletion_timestamp.is_some() && !containers.any(runs)
}

fn is_on_node(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    let node = spec.and_then(|spec| spec.node_name.as_deref());
    node.is_some_and(|node| !node.is_empty())
}

/// True when the pod is on a node and mounts the claim. No node starts a pod with a claim that is
/// being deleted, so pods without a node do not count.
pub(super) fn mounts(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let is_own = || {
        let owners = claim.metadata.owner_references.iter().flatten();
        let mut owners = owners.filter(|owner| owner.controller == Some(true));
        owners.any(|owner| Some(&owner.uid) == pod.metadata.uid.as_ref())
    };
    is_on_node(pod)
        && volumes(pod).any(|volume| {
            named(volume) == Some(name)
                || (!is_shut_down(pod) && made(pod, volume).as_deref() == Some(name) && is_own())
        })
}

/// The node is done with such a pod; only a finalizer may keep it, perhaps until the claim is gone.
fn is_shut_down(pod: &Pod) -> bool {
    let meta = &pod.metadata;
    meta.deletion_timestamp.is_some() && meta.deletion_grace_period_seconds == Some(0)
}

pub(super) fn is_bound(volume: &PersistentVolume) -> bool {
    let status = volume.status.as_ref();
    status.and_then(|status| status.phase.as_deref()) == Some("Bound")
}

pub(super) fn classes_of_volume(volume: &PersistentVolume) -> Vec<String> {
    let spec = volume.spec.as_ref();
    let name = spec.and_then(|spec| spec.volume_attributes_class_name.clone());
    name.into_iter().filter(|name| !name.is_empty()).collect()
}

/// Wanted, there now, and on its way.
pub(super) fn classes_of_claim(claim: &PersistentVolumeClaim) -> Vec<String> {
    let status = claim.status.as_ref();
    let change = status.and_then(|status| status.modify_volume_status.as_ref());
    let spec = claim.spec.as_ref();
    let mut names: Vec<String> = [
        spec.and_then(|spec| spec.volume_attributes_class_name.clone()),
        status.and_then(|status| status.current_volume_attributes_class_name.clone()),
        change.and_then(|change| change.target_volume_attributes_class_name.clone()),
    ]
    .into_iter()
    .flatten()
    .filter(|name| !name.is_empty())
    .collect();
    names.sort();
    names.dedup();
    names
}
