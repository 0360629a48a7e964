//! What claims of devices use: themselves, and devices of each class, at worst.
//!
//! A claim that the scheduler made for a pod which asks for extended resources is not charged for
//! what that pod is charged for already.

use super::{DeviceClasses, Surroundings, pods};
use crate::amounts::Amounts;
use crate::json;
use crate::object::Object;
use crate::quantity::{Format, Quantity};
use serde_json::Value;
use std::collections::BTreeMap;

const COUNT: &str = "count/resourceclaims.resource.k8s.io";
/// After the name of a class: devices of it.
const DEVICES: &str = ".deviceclass.resource.k8s.io/devices";
/// Before the name of a class: the extended resource that every class has.
pub const IMPLICIT: &str = "deviceclass.resource.kubernetes.io/";
const REQUESTS: &str = "requests.";
const FOR_EXTENDED: &str = "resource.kubernetes.io/extended-resource-claim";
/// Devices that one claim can be given: what "all" comes to at worst.
const DEVICES_MAX: i64 = 32;

pub fn counts(name: &str, classes: &DeviceClasses) -> bool {
    name == COUNT
        || name.ends_with(DEVICES)
        || extended(name).is_some_and(|resource| classes.offer(resource))
}

/// Whether it depends on the device classes what a quota's resource of this name counts.
pub fn depends_on_classes(name: &str) -> bool {
    extended(name).is_some()
}

fn extended(name: &str) -> Option<&str> {
    name.strip_prefix(REQUESTS)
        .filter(|_| pods::is_extended_request(name))
}

pub fn usage(claim: &Object, around: &Surroundings<'_>) -> Amounts {
    let mut devices = BTreeMap::new();
    for request in claim.list(&["spec", "devices", "requests"]) {
        for (class, count) in worst(request) {
            *devices.entry(class).or_insert(0) += count;
        }
    }
    let amount = |count: i64| Quantity::from_units(count, Format::DecimalSi);
    let mut usage = Amounts::default();
    usage.set_count(COUNT, 1);
    for (class, count) in &devices {
        usage.set(format!("{class}{DEVICES}"), amount(*count));
    }
    let charged = charged_to_pod(claim, around);
    let mut as_extended = Amounts::default();
    for (class, count) in devices.iter().filter(|(class, _)| !class.is_empty()) {
        as_extended.set(format!("{REQUESTS}{IMPLICIT}{class}"), amount(*count));
        if let Some(resource) = around.classes.extended_resource(class) {
            as_extended.set(format!("{REQUESTS}{resource}"), amount(*count));
        }
    }
    for (name, count) in as_extended.iter() {
        let rest = count.minus(charged.get(name).unwrap_or(Quantity::ZERO));
        if rest > Quantity::ZERO {
            usage.set(name, rest);
        }
    }
    usage
}

/// Devices of each class that one request may be given: the most of its alternatives.
fn worst(request: &Value) -> BTreeMap<&str, i64> {
    let alternatives = json::list(request, "firstAvailable");
    let exact = json::some(request, "exactly");
    let all = if alternatives.is_empty() {
        exact.map_or(&[][..], std::slice::from_ref)
    } else {
        alternatives
    };
    let mut worst = BTreeMap::new();
    for one in all {
        let count = match json::text(one, "allocationMode") {
            "ExactCount" => json::int(one, "count").unwrap_or(0),
            "All" => DEVICES_MAX,
            _ => 0,
        };
        let class = json::text(one, "deviceClassName");
        // An alternative that may be given nothing is none.
        if count > 0 || alternatives.is_empty() {
            let known = worst.entry(class).or_insert(count);
            *known = count.max(*known);
        }
    }
    worst
}

/// What the pod is charged for that this claim was made for.
fn charged_to_pod(claim: &Object, around: &Surroundings<'_>) -> Amounts {
    let found = pod_served(claim).and_then(|(name, uid)| {
        let pod = (around.pod)(claim.namespace(), name)?;
        Some((uid, pod))
    });
    let Some((uid, pod)) = found else {
        return Amounts::default();
    };
    let named = pod.get(&["status", "extendedResourceClaimStatus"]);
    let is_its_claim = match named.filter(|status| !status.is_null()) {
        Some(status) => json::text(status, "resourceClaimName") == claim.name(),
        None => is_first(claim, uid, around),
    };
    if pod.uid() == uid && is_its_claim {
        pods::usage(&pod, around.now)
    } else {
        Amounts::default()
    }
}

/// Name and uid of the pod that the claim was made for, as it asks for extended resources.
pub fn pod_served(claim: &Object) -> Option<(&str, &str)> {
    if claim.annotation(FOR_EXTENDED) != Some("true") {
        return None;
    }
    let mut owners = claim.owner_references();
    let owner = owners.find(|owner| owner.controller)?;
    (owner.kind == "Pod" && owner.api_version == "v1").then_some((owner.name, owner.uid))
}

/// Of several claims that say they were made for a pod, only the oldest is believed.
fn is_first(claim: &Object, pod_uid: &str, around: &Surroundings<'_>) -> bool {
    let age = |claim: &Object| {
        let created = claim.str(&["metadata", "creationTimestamp"]).to_owned();
        (created, claim.name().to_owned())
    };
    let own = age(claim);
    let claims = (around.claims)(claim.namespace());
    let mut rivals = claims
        .iter()
        .filter(|other| pod_served(other).is_some_and(|(_, uid)| uid == pod_uid));
    rivals.all(|other| age(other) >= own)
}
