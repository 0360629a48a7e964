//! Which claims a pod uses. Pure.

use k8s_openapi::api::core::v1::{Pod, Volume};

/// The index of pods by what `claims_of` gives.
pub const BY_CLAIM: &str = "claim";

/// Under what a claim is found.
pub fn index(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// Every claim that a pod names or that was made for it.
pub fn claims_of(pod: &Pod) -> Vec<String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let names = names_of(pod).into_iter();
    names.map(|name| index(namespace, &name)).collect()
}

/// Their names, all of the pod's namespace.
pub fn names_of(pod: &Pod) -> Vec<String> {
    let name = |volume| {
        let named = named(volume).map(str::to_owned);
        named.or_else(|| made(pod, volume))
    };
    volumes(pod).filter_map(name).collect()
}

pub fn volumes(pod: &Pod) -> impl Iterator<Item = &Volume> {
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.volumes.as_ref())
        .into_iter()
        .flatten()
}

/// The claim that its user names.
pub fn named(volume: &Volume) -> Option<&str> {
    let source = volume.persistent_volume_claim.as_ref()?;
    Some(&source.claim_name)
}

/// The name of the claim that is made for an ephemeral volume.
pub fn made(pod: &Pod, volume: &Volume) -> Option<String> {
    volume.ephemeral.as_ref()?;
    let pod = pod.metadata.name.as_deref().unwrap_or_default();
    Some(format!("{pod}-{}", volume.name))
}
