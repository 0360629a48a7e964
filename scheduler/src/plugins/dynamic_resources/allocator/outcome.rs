//! What is written into a claim that got devices.

use super::AllocateError;
use super::asks::{Ask, devices};
use super::capacity::Consumed;
use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::api::resource::v1::{
    AllocationResult, Device, DeviceAllocationConfiguration, DeviceAllocationResult,
    DeviceRequestAllocationResult, ResourceClaim, ResourceSlice,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;
use std::collections::BTreeSet;

/// A device for a request.
#[derive(Clone, Debug)]
pub struct Chosen<'a> {
    pub slice: &'a ResourceSlice,
    pub device: &'a Device,
    /// Of a device that several may have.
    pub share: Option<Share>,
}

#[derive(Clone, Debug)]
pub struct Share {
    pub id: String,
    pub consumed: Consumed,
}

/// The requests of a claim as they were met, each with its devices, in the order of both.
pub type Met<'a, 's> = Vec<(&'s Ask<'a>, Chosen<'a>)>;

/// `asks` has what was chosen for each request of the claim.
pub fn result(
    claim: &ResourceClaim,
    asks: &[&Ask<'_>],
    met: &Met<'_, '_>,
    node: &str,
) -> Result<AllocationResult, AllocateError> {
    let results = met.iter().map(|(ask, chosen)| device_result(ask, chosen));
    let config = configuration(claim, asks);
    Ok(AllocationResult {
        devices: Some(DeviceAllocationResult {
            results: Some(results.collect()),
            config: (!config.is_empty()).then_some(config),
        }),
        node_selector: node_selector(claim, met, node)?,
        ..AllocationResult::default()
    })
}

fn device_result(ask: &Ask<'_>, chosen: &Chosen<'_>) -> DeviceRequestAllocationResult {
    let consumed = chosen.share.as_ref().map(|share| &share.consumed);
    let consumed = consumed.filter(|consumed| !consumed.is_empty());
    let consumed = consumed.map(|consumed| {
        let consumed = consumed.iter();
        let consumed = consumed.map(|(name, one)| (name.clone(), Quantity(one.to_string())));
        consumed.collect::<BTreeMap<_, _>>()
    });
    DeviceRequestAllocationResult {
        request: ask.name(),
        driver: chosen.slice.spec.driver.clone(),
        pool: chosen.slice.spec.pool.name.clone(),
        device: chosen.device.name.clone(),
        admin_access: ask.is_admin.then_some(true),
        tolerations: (!ask.tolerations.is_empty()).then(|| ask.tolerations.to_vec()),
        share_id: chosen.share.as_ref().map(|share| share.id.clone()),
        consumed_capacity: consumed,
        binding_conditions: chosen.device.binding_conditions.clone(),
        binding_failure_conditions: chosen.device.binding_failure_conditions.clone(),
    }
}

/// That of classes, each once with all its requests, and then that of the claim.
fn configuration(claim: &ResourceClaim, asks: &[&Ask<'_>]) -> Vec<DeviceAllocationConfiguration> {
    let mut all: Vec<DeviceAllocationConfiguration> = Vec::new();
    let mut seen = BTreeSet::new();
    for ask in asks {
        let class = ask.class.metadata.name.as_deref().unwrap_or_default();
        if !seen.insert(class) {
            continue;
        }
        let same = asks
            .iter()
            .filter(|one| one.class.metadata.name.as_deref().unwrap_or_default() == class);
        let requests: Vec<String> = same.map(|one| one.name()).collect();
        for one in ask.class.spec.config.iter().flatten() {
            all.push(DeviceAllocationConfiguration {
                source: "FromClass".to_owned(),
                requests: Some(requests.clone()),
                opaque: one.opaque.clone(),
            });
        }
    }
    let own = devices(claim).and_then(|devices| devices.config.as_deref());
    for one in own.unwrap_or_default() {
        let named = one.requests.as_deref().unwrap_or_default();
        let times = match named {
            [] => 1,
            named => asks.iter().filter(|ask| ask.is_named_in(named)).count(),
        };
        all.extend((0..times).map(|_| DeviceAllocationConfiguration {
            source: "FromClaim".to_owned(),
            requests: one.requests.clone(),
            opaque: one.opaque.clone(),
        }));
    }
    all
}

/// Where the devices can be used; `None` for everywhere.
fn node_selector(
    claim: &ResourceClaim,
    met: &Met<'_, '_>,
    node: &str,
) -> Result<Option<NodeSelector>, AllocateError> {
    let mut term = NodeSelectorTerm::default();
    for (_, Chosen { slice, device, .. }) in met {
        let (name, selector) = match slice.spec.per_device_node_selection {
            Some(true) => (&device.node_name, &device.node_selector),
            _ => (&slice.spec.node_name, &slice.spec.node_selector),
        };
        if name.is_some() || device.binds_to_node == Some(true) {
            return Ok(Some(only(node)));
        }
        let terms = selector
            .as_ref()
            .map(|one| one.node_selector_terms.as_slice());
        match terms.unwrap_or_default() {
            [] => {}
            [one] => {
                merge(&mut term.match_fields, &one.match_fields);
                merge(&mut term.match_expressions, &one.match_expressions);
            }
            many => {
                let claim = claim.metadata.name.as_deref().unwrap_or_default();
                return Err(AllocateError::Wrong(format!(
                    "create NodeSelector for claim {claim}: unsupported \
                     ResourceSlice.NodeSelector with {} terms",
                    many.len()
                )));
            }
        }
    }
    let is_any = term == NodeSelectorTerm::default();
    Ok((!is_any).then(|| NodeSelector {
        node_selector_terms: vec![term],
    }))
}

fn only(node: &str) -> NodeSelector {
    let name = NodeSelectorRequirement {
        key: "metadata.name".to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    NodeSelector {
        node_selector_terms: vec![NodeSelectorTerm {
            match_fields: Some(vec![name]),
            match_expressions: None,
        }],
    }
}

/// Each requirement once.
fn merge(
    to: &mut Option<Vec<NodeSelectorRequirement>>,
    from: &Option<Vec<NodeSelectorRequirement>>,
) {
    let values = |one: &NodeSelectorRequirement| -> BTreeSet<String> {
        one.values.iter().flatten().cloned().collect()
    };
    for one in from.iter().flatten() {
        let known = to.get_or_insert_default();
        let is_same = |other: &NodeSelectorRequirement| {
            other.key == one.key && other.operator == one.operator && values(other) == values(one)
        };
        if !known.iter().any(is_same) {
            known.push(one.clone());
        }
    }
}
