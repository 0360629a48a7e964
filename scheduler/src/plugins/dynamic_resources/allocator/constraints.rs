//! What the devices of a claim must have in common, or must not.

use super::AllocateError;
use super::asks::{Ask, devices};
use coracle_client::key_of;
use k8s_openapi::api::resource::v1::{Device, DeviceAttribute, ResourceClaim};

#[derive(Debug)]
pub struct Constraint<'a> {
    attribute: &'a str,
    /// Each device has another value; else all have one.
    is_distinct: bool,
    /// Of these requests, or of all where there is none.
    requests: &'a [String],
    /// Of the devices so far.
    values: Vec<&'a DeviceAttribute>,
}

pub fn of_claim(claim: &ResourceClaim) -> Result<Vec<Constraint<'_>>, AllocateError> {
    let all = devices(claim).and_then(|devices| devices.constraints.as_deref());
    let all = all.unwrap_or_default().iter().enumerate();
    all.map(|(index, one)| {
        let (attribute, is_distinct) = match (&one.match_attribute, &one.distinct_attribute) {
            (Some(attribute), _) => (attribute, false),
            (None, Some(attribute)) => (attribute, true),
            (None, None) => {
                let claim = key_of(claim);
                return Err(AllocateError::Wrong(format!(
                    "claim {claim}, constraint #{index}: empty constraint (unsupported constraint \
                     type?)"
                )));
            }
        };
        Ok(Constraint {
            attribute,
            is_distinct,
            requests: one.requests.as_deref().unwrap_or_default(),
            values: Vec::new(),
        })
    })
    .collect()
}

impl<'a> Constraint<'a> {
    fn applies(&self, ask: &Ask<'_>) -> bool {
        self.requests.is_empty() || ask.is_named_in(self.requests)
    }

    /// False where the device does not go with those before it.
    pub fn add(&mut self, ask: &Ask<'_>, device: &'a Device, driver: &str) -> bool {
        if !self.applies(ask) {
            return true;
        }
        let Some(value) = attribute(device, driver, self.attribute) else {
            return false;
        };
        let mut known = self.values.iter();
        let goes = match self.is_distinct {
            true => known.all(|known| !is_same(known, value)),
            false => known.next().is_none_or(|known| is_same(known, value)),
        };
        if goes {
            self.values.push(value);
        }
        goes
    }

    /// Takes back the last that was added.
    pub fn remove(&mut self, ask: &Ask<'_>) {
        if self.applies(ask) {
            self.values.pop();
        }
    }
}

/// A name without a domain is in that of the driver.
fn attribute<'a>(device: &'a Device, driver: &str, name: &str) -> Option<&'a DeviceAttribute> {
    let all = device.attributes.as_ref()?;
    all.get(name).or_else(|| {
        let (domain, name) = name.split_once('/')?;
        (domain == driver).then(|| all.get(name))?
    })
}

/// Attributes have one value each, of one type.
fn is_same(a: &DeviceAttribute, b: &DeviceAttribute) -> bool {
    let is_known = |one: &DeviceAttribute| {
        one.string.is_some() || one.int.is_some() || one.bool.is_some() || one.version.is_some()
    };
    is_known(a) && a == b
}
