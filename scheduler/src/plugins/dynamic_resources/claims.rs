//! The claims of a pod: those that its spec names, and those made for it. Pure.

use crate::devices::Devices;
use crate::pod_info::PodInfo;
use coracle_client::ObjectKey;
use k8s_openapi::api::core::v1::PodResourceClaim;
use k8s_openapi::api::resource::v1::{
    ResourceClaim, ResourceClaimConsumerReference as Consumer, ResourceClaimStatus,
};
use std::sync::Arc;

pub fn are_used_by(pod: &PodInfo) -> bool {
    !pod.device_claims().is_empty()
}

/// All of them, or in upstream's words why the pod has to wait.
pub fn of_pod(pod: &PodInfo, devices: &Devices) -> Result<Vec<Arc<ResourceClaim>>, String> {
    let mut found = Vec::new();
    for asked in pod.device_claims() {
        let Some((name, is_generated)) = name(pod, asked)? else {
            continue; // None is needed.
        };
        let key = ObjectKey::new(&pod.key.namespace, name);
        let claim = devices.claim(&key);
        let claim = claim
            .ok_or_else(|| format!("could not find ResourceClaim \"{}/{name}\"", key.namespace))?;
        if claim.metadata.deletion_timestamp.is_some() {
            return Err(format!("resourceclaim \"{name}\" is being deleted"));
        }
        if is_generated && !is_owned(claim, pod) {
            return Err(format!(
                "ResourceClaim {key} was not created for Pod {} (Pod is not owner)",
                pod.key
            ));
        }
        found.push(Arc::clone(claim));
    }
    Ok(found)
}

/// And whether it is one that was made for the pod.
fn name<'a>(
    pod: &'a PodInfo,
    asked: &'a PodResourceClaim,
) -> Result<Option<(&'a str, bool)>, String> {
    if let Some(name) = &asked.resource_claim_name {
        return Ok(Some((name, false)));
    }
    let (key, claim) = (&pod.key, &asked.name);
    if asked.resource_claim_template_name.is_none() {
        return Err(format!(
            "pod \"{key}\", spec.resourceClaim \"{claim}\": none of the supported fields are set"
        ));
    }
    let mut statuses = pod.made_claims().iter();
    match statuses.find(|one| one.name == *claim) {
        Some(one) => Ok(one.resource_claim_name.as_deref().map(|name| (name, true))),
        None => Err(format!("pod \"{key}\": ResourceClaim not created yet")),
    }
}

fn is_owned(claim: &ResourceClaim, pod: &PodInfo) -> bool {
    let owners = claim.metadata.owner_references.iter().flatten();
    let mut controllers = owners.filter(|one| one.controller == Some(true));
    controllers.any(|one| one.uid == pod.uid)
}

pub fn status(claim: &ResourceClaim) -> Option<&ResourceClaimStatus> {
    claim.status.as_ref()
}

pub fn reserved_for(claim: &ResourceClaim) -> &[Consumer] {
    let reserved = status(claim).and_then(|status| status.reserved_for.as_deref());
    reserved.unwrap_or_default()
}

pub fn is_reserved_for(claim: &ResourceClaim, pod: &PodInfo) -> bool {
    reserved_for(claim).iter().any(|one| one.uid == pod.uid)
}

pub fn uid(claim: &ResourceClaim) -> &str {
    claim.metadata.uid.as_deref().unwrap_or_default()
}
