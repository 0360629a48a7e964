//! How much of the capacity of a device one request takes.
//!
//! A device that several claims may have says by its policies how requests are rounded; one that a
//! claim has alone must have as much as is asked for.

use super::stock::{Use, amount};
use coracle_api::quantity::{Format, Quantity as Amount};
use k8s_openapi::api::resource::v1::{
    CapacityRequestPolicy, CapacityRequestPolicyRange, CapacityRequirements, Device, DeviceCapacity,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;

pub type Consumed = BTreeMap<String, Amount>;

/// What the request takes of the device beside what others have of it; `None` where it does not fit.
pub fn taken(
    device: &Device,
    asked: Option<&CapacityRequirements>,
    used: Option<&Use>,
    promised: &Consumed,
) -> Option<Consumed> {
    let none = BTreeMap::new();
    let there = device.capacity.as_ref().unwrap_or(&none);
    let asked = asked.and_then(|asked| asked.requests.as_ref());
    let mut names = asked.into_iter().flatten().map(|(name, _)| name);
    if !names.all(|name| there.contains_key(name)) {
        return None;
    }
    let mut taken = Consumed::new();
    for (name, capacity) in there {
        let wanted = consumed(asked.and_then(|asked| asked.get(name)), capacity);
        if violates(wanted, capacity.request_policy.as_ref()) {
            return None;
        }
        let others = [used.map(|used| &used.consumed), Some(promised)];
        let others = others.into_iter().flatten().filter_map(|all| all.get(name));
        let sum = others.fold(wanted, |sum, one| sum.plus(*one));
        if sum > amount(&capacity.value) {
            return None;
        }
        taken.insert(name.clone(), wanted);
    }
    Some(taken)
}

fn consumed(asked: Option<&Quantity>, capacity: &DeviceCapacity) -> Amount {
    let policy = capacity.request_policy.as_ref();
    let Some(asked) = asked.map(amount) else {
        let default = policy.and_then(|policy| policy.default.as_ref());
        return amount(default.unwrap_or(&capacity.value));
    };
    let Some(policy) = policy else { return asked };
    if let Some(range) = &policy.valid_range {
        return in_range(asked, range);
    }
    let mut values = policy.valid_values.iter().flatten().map(amount);
    values.find(|value| asked <= *value).unwrap_or(asked)
}

fn in_range(asked: Amount, range: &CapacityRequestPolicyRange) -> Amount {
    let min = amount(&range.min);
    if asked < min {
        return min;
    }
    let Some(step) = step(range) else {
        return asked;
    };
    let over = asked.value().saturating_sub(min.value());
    let steps = over / step + i64::from(over % step != 0);
    let value = step.saturating_mul(steps).saturating_add(min.value());
    Amount::from_units(value, Format::BinarySi)
}

fn step(range: &CapacityRequestPolicyRange) -> Option<i64> {
    let step = range.step.as_ref().map(|step| amount(step).value());
    step.filter(|step| *step > 0)
}

fn violates(wanted: Amount, policy: Option<&CapacityRequestPolicy>) -> bool {
    let Some(policy) = policy else { return false };
    if policy.default.as_ref().map(amount) == Some(wanted) {
        return false;
    }
    if let Some(range) = &policy.valid_range {
        let is_over = range.max.as_ref().is_some_and(|max| wanted > amount(max));
        let over = wanted.value().saturating_sub(amount(&range.min).value());
        return is_over || step(range).is_some_and(|step| over % step != 0);
    }
    let values = policy.valid_values.as_deref().unwrap_or_default();
    !values.is_empty() && !values.iter().any(|value| amount(value) == wanted)
}
