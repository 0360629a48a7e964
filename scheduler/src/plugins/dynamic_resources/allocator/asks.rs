//! What the requests of a claim ask for, exact ones and alternatives alike.

use super::AllocateError;
use super::stock::Stock;
use coracle_client::key_of;
use coracle_client::toleration::tolerates_device;
use k8s_openapi::api::resource::v1::{
    CapacityRequirements, Device, DeviceClaim, DeviceClass, DeviceRequest, DeviceSelector,
    DeviceToleration, ResourceClaim,
};

/// One request, or one of its alternatives.
#[derive(Debug)]
pub struct Ask<'a> {
    pub request: &'a str,
    pub alternative: Option<&'a str>,
    pub class: &'a DeviceClass,
    /// `None` for all that there are.
    pub count: Option<usize>,
    pub is_admin: bool,
    pub selectors: &'a [DeviceSelector],
    pub tolerations: &'a [DeviceToleration],
    pub capacity: Option<&'a CapacityRequirements>,
}

impl Ask<'_> {
    /// As results have it.
    pub fn name(&self) -> String {
        match self.alternative {
            Some(alternative) => format!("{}/{alternative}", self.request),
            None => self.request.to_owned(),
        }
    }

    /// As messages have it.
    pub fn short_name(&self) -> &str {
        self.alternative.unwrap_or(self.request)
    }

    /// Whether a list of requests has this one.
    pub fn is_named_in(&self, requests: &[String]) -> bool {
        requests
            .iter()
            .any(|one| one == self.request || self.alternative.is_some() && *one == self.name())
    }

    /// Whether the device has a taint that keeps it from who does not tolerate it.
    pub fn bears_taints(&self, device: &Device) -> bool {
        let taints = device.taints.iter().flatten();
        let mut hard = taints.filter(|one| matches!(&*one.effect, "NoSchedule" | "NoExecute"));
        hard.all(|taint| {
            let mut tolerations = self.tolerations.iter();
            tolerations.any(|one| tolerates_device(one, taint))
        })
    }
}

pub fn requests(claim: &ResourceClaim) -> &[DeviceRequest] {
    let devices = claim.spec.devices.as_ref();
    let requests = devices.and_then(|devices| devices.requests.as_deref());
    requests.unwrap_or_default()
}

/// The alternatives of each request of a claim; an exact one has one.
pub fn of_claim<'a>(
    claim: &'a ResourceClaim,
    stock: &'a Stock,
) -> Result<Vec<Vec<Ask<'a>>>, AllocateError> {
    let all = requests(claim).iter();
    all.map(|request| of_request(claim, request, stock))
        .collect()
}

fn of_request<'a>(
    claim: &ResourceClaim,
    request: &'a DeviceRequest,
    stock: &'a Stock,
) -> Result<Vec<Ask<'a>>, AllocateError> {
    let wanting = Wanting { claim, stock };
    if let Some(one) = &request.exactly {
        let ask = Ask {
            request: &request.name,
            alternative: None,
            class: wanting.class(&request.name, &one.device_class_name)?,
            count: wanting.count(&request.name, one.allocation_mode.as_deref(), one.count)?,
            is_admin: one.admin_access == Some(true),
            selectors: one.selectors.as_deref().unwrap_or_default(),
            tolerations: one.tolerations.as_deref().unwrap_or_default(),
            capacity: one.capacity.as_ref(),
        };
        return Ok(vec![ask]);
    }
    let alternatives = request.first_available.iter().flatten();
    let asks = alternatives.map(|one| {
        Ok(Ask {
            request: &request.name,
            alternative: Some(&one.name),
            class: wanting.class(&one.name, &one.device_class_name)?,
            count: wanting.count(&one.name, one.allocation_mode.as_deref(), one.count)?,
            is_admin: false,
            selectors: one.selectors.as_deref().unwrap_or_default(),
            tolerations: one.tolerations.as_deref().unwrap_or_default(),
            capacity: one.capacity.as_ref(),
        })
    });
    asks.collect()
}

struct Wanting<'a, 'c> {
    claim: &'c ResourceClaim,
    stock: &'a Stock,
}

impl<'a> Wanting<'a, '_> {
    fn class(&self, request: &str, name: &str) -> Result<&'a DeviceClass, AllocateError> {
        let found = self.stock.classes.get(name).map(|class| &**class);
        found.ok_or_else(|| {
            let claim = key_of(self.claim);
            AllocateError::Wrong(format!(
                "claim {claim}, request {request}: could not retrieve device class {name}"
            ))
        })
    }

    fn count(
        &self,
        request: &str,
        mode: Option<&str>,
        count: Option<i64>,
    ) -> Result<Option<usize>, AllocateError> {
        match mode {
            Some("All") => Ok(None),
            None | Some("ExactCount") => Ok(Some(
                usize::try_from(count.unwrap_or(1)).unwrap_or(usize::MAX),
            )),
            Some(mode) => {
                let claim = key_of(self.claim);
                Err(AllocateError::Wrong(format!(
                    "claim {claim}, request {request}: unsupported count mode {mode}"
                )))
            }
        }
    }
}

pub fn devices(claim: &ResourceClaim) -> Option<&DeviceClaim> {
    claim.spec.devices.as_ref()
}
