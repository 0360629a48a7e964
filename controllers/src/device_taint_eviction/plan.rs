//! When a pod has to go for the taints of its devices. Pure.
//!
//! Source of the rules: KEP-5055 and upstream's loop of the same name.

use std::sync::Arc;
use std::time::Duration;

use coracle_client::toleration::tolerates_device;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodResourceClaimStatus};
use k8s_openapi::api::resource::v1::{
    AllocationResult, Device, DeviceRequestAllocationResult as Given, DeviceTaint, ResourceClaim,
    ResourceClaimConsumerReference as Consumer, ResourceSlice,
};

use crate::pods;
use crate::resource_claims::{self, Named};

const NO_EXECUTE: &str = "NoExecute";

pub(super) fn statuses(pod: &Pod) -> &[PodResourceClaimStatus] {
    resource_claims::statuses(pod)
}

pub(super) fn uses_claims(pod: &Pod) -> bool {
    !resource_claims::claims(pod).is_empty()
}

/// Drivers choose the names of their pools; neither has a space in it.
fn pool(driver: &str, pool: &str) -> String {
    format!("{driver} {pool}")
}

/// For an index.
pub(super) fn pool_of(slice: &ResourceSlice) -> String {
    pool(&slice.spec.driver, &slice.spec.pool.name)
}

/// For an index.
pub(super) fn pools_of(claim: &ResourceClaim) -> Vec<String> {
    let given = allocation(claim).into_iter().flat_map(given);
    let mut pools: Vec<String> = given.map(|one| pool(&one.driver, &one.pool)).collect();
    pools.sort_unstable();
    pools.dedup();
    pools
}

fn allocation(claim: &ResourceClaim) -> Option<&AllocationResult> {
    claim.status.as_ref()?.allocation.as_ref()
}

fn given(allocation: &AllocationResult) -> impl Iterator<Item = &Given> {
    let devices = allocation.devices.iter();
    devices.flat_map(|devices| devices.results.iter().flatten())
}

/// The pods for which a claim is reserved.
pub(super) fn users(claim: &ResourceClaim) -> impl Iterator<Item = &Consumer> {
    let status = claim.status.iter();
    let reserved = status.flat_map(|status| status.reserved_for.iter().flatten());
    reserved.filter(|one| {
        one.resource == "pods" && one.api_group.as_deref().unwrap_or_default().is_empty()
    })
}

pub(super) fn is_tainted(slice: &ResourceSlice) -> bool {
    let mut devices = slice.spec.devices.iter().flatten();
    devices.any(|device| no_execute(device).next().is_some())
}

fn no_execute(device: &Device) -> impl Iterator<Item = &DeviceTaint> {
    let taints = device.taints.iter().flatten();
    taints.filter(|taint| taint.effect == NO_EXECUTE)
}

/// The earliest time that a taint of one of its devices leaves it; `None` where it may stay, and
/// while it has no node.
pub(super) fn goes_at(
    pod: &Pod,
    claim: impl Fn(&str) -> Option<Arc<ResourceClaim>>,
    slices: impl Fn(&str) -> Vec<Arc<ResourceSlice>>,
) -> Option<Timestamp> {
    if pods::node_name(pod).is_empty() {
        return None;
    }
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let claims = resource_claims::claims(pod).iter().filter_map(|named| {
        let found = match resource_claims::named(pod, named) {
            Named::Direct(name) => claim(name),
            Named::Generated(name) => claim(name).filter(|one| resource_claims::is_for(one, pod)),
            Named::NotNeeded | Named::Missing => None,
        };
        found.filter(|claim| users(claim).any(|user| user.uid == uid))
    });
    claims.filter_map(|claim| ends_at(&claim, &slices)).min()
}

/// The earliest time that a taint leaves to who uses the claim.
fn ends_at(
    claim: &ResourceClaim,
    slices: &impl Fn(&str) -> Vec<Arc<ResourceSlice>>,
) -> Option<Timestamp> {
    let times = given(allocation(claim)?).filter_map(|given| {
        let slices = slices(&pool(&given.driver, &given.pool));
        let device = device(&slices, &given.device)?;
        let times = no_execute(device).filter_map(|taint| leaves_until(given, taint));
        times.min()
    });
    times.min()
}

/// As the newest slices of its pool have it: those of an older generation count no more.
fn device<'a>(slices: &'a [Arc<ResourceSlice>], name: &str) -> Option<&'a Device> {
    let newest = slices.iter().map(|one| one.spec.pool.generation).max()?;
    let newest = slices
        .iter()
        .filter(|one| one.spec.pool.generation == newest);
    let mut devices = newest.flat_map(|one| one.spec.devices.iter().flatten());
    devices.find(|device| device.name == name)
}

/// `None` for ever. The shortest of the times counts that tolerations of this taint give, and no
/// time at all where there are none.
fn leaves_until(given: &Given, taint: &DeviceTaint) -> Option<Timestamp> {
    let since = taint.time_added.as_ref().map_or(Timestamp::MIN, |at| at.0);
    let tolerations = given.tolerations.iter().flatten().filter(|toleration| {
        toleration.effect.as_deref() == Some(NO_EXECUTE) && tolerates_device(toleration, taint)
    });
    let mut shortest: Option<i64> = None;
    for toleration in tolerations {
        let seconds = toleration.toleration_seconds?.max(0);
        shortest = Some(shortest.map_or(seconds, |other| other.min(seconds)));
    }
    let seconds = u64::try_from(shortest.unwrap_or(0)).unwrap_or(0);
    let at = since.saturating_add(Duration::from_secs(seconds));
    Some(at.unwrap_or(Timestamp::MAX))
}

#[cfg(test)]
mod tests;
