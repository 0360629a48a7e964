//! Whether the devices of an allocated claim are made ready, where their driver must do that first.
//! Pure.

use super::claims::status;
use crate::devices::allocation;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::resource::v1::{DeviceRequestAllocationResult, ResourceClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    Waiting,
    /// Never, with these devices.
    Failed(String),
}

fn results(claim: &ResourceClaim) -> impl Iterator<Item = &DeviceRequestAllocationResult> {
    let devices = allocation(claim).and_then(|it| it.devices.as_ref());
    devices
        .into_iter()
        .flat_map(|it| it.results.iter().flatten())
}

/// Whether the driver has something to do before the pod may be bound.
pub fn has_conditions(claim: &ResourceClaim) -> bool {
    results(claim).any(|one| !conditions(one).is_empty())
}

fn conditions(one: &DeviceRequestAllocationResult) -> &[String] {
    one.binding_conditions.as_deref().unwrap_or_default()
}

pub fn of(claim: &ResourceClaim) -> Readiness {
    for one in results(claim).filter(|one| !conditions(one).is_empty()) {
        let mut devices = status(claim)
            .into_iter()
            .flat_map(|it| it.devices.iter().flatten());
        let Some(device) = devices.find(|device| {
            (&device.driver, &device.pool, &device.device) == (&one.driver, &one.pool, &one.device)
        }) else {
            return Readiness::Waiting;
        };
        let is_true = |name: &String| -> Option<&Condition> {
            let mut told = device.conditions.iter().flatten();
            told.find(|told| told.type_ == *name && told.status == "True")
        };
        let failures = one.binding_failure_conditions.iter().flatten();
        if let Some(failed) = failures.filter_map(is_true).next() {
            return Readiness::Failed(format!(
                "device binding failed: claim={}, reason={}, message={:?}",
                claim.metadata.name.as_deref().unwrap_or_default(),
                failed.reason,
                failed.message
            ));
        }
        if !conditions(one).iter().all(|name| is_true(name).is_some()) {
            return Readiness::Waiting;
        }
    }
    Readiness::Ready
}

/// Whether the driver had its time.
pub fn is_over(claim: &ResourceClaim, max: Duration, now: Timestamp) -> bool {
    let began = allocation(claim).and_then(|it| it.allocation_timestamp.as_ref());
    let max = SignedDuration::try_from(max).unwrap_or(SignedDuration::MAX);
    let end = began.map(|began| began.0.checked_add(max));
    has_conditions(claim) && matches!(end, Some(Ok(end)) if end < now)
}
