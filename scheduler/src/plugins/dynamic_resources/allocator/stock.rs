//! What there is of devices, and what of it claims have.

use coracle_api::quantity::Quantity as Amount;
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceClass, ResourceSlice};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A copy of all that a search looks at.
#[derive(Debug, Default)]
pub struct Stock {
    /// By name.
    pub slices: Vec<Arc<ResourceSlice>>,
    pub classes: HashMap<String, Arc<DeviceClass>>,
    /// Places in `slices` of those of one node, rising.
    of_node: HashMap<String, Vec<usize>>,
    /// Of those that may be for any.
    of_any: Vec<usize>,
    /// By driver, pool and name.
    uses: HashMap<String, HashMap<String, HashMap<String, Use>>>,
}

/// What claims have of a device.
#[derive(Clone, Debug, Default)]
pub struct Use {
    pub is_whole: bool,
    /// One or more have a share of it.
    pub is_shared: bool,
    pub consumed: BTreeMap<String, Amount>,
}

impl Stock {
    pub fn new<'a>(
        slices: Vec<Arc<ResourceSlice>>,
        classes: HashMap<String, Arc<DeviceClass>>,
        allocations: impl Iterator<Item = &'a AllocationResult>,
    ) -> Self {
        let mut stock = Self {
            slices,
            classes,
            ..Self::default()
        };
        for (place, slice) in stock.slices.iter().enumerate() {
            let node = slice.spec.node_name.as_deref().unwrap_or_default();
            // Counters are there for devices of other slices as well.
            if node.is_empty() || has_counters(slice) {
                stock.of_any.push(place);
            } else {
                stock
                    .of_node
                    .entry(node.to_owned())
                    .or_default()
                    .push(place);
            }
        }
        allocations.for_each(|one| stock.take(one));
        stock
    }

    fn take(&mut self, allocation: &AllocationResult) {
        let results = allocation.devices.iter().flat_map(|it| &it.results);
        for one in results.flatten() {
            // Who only looks after a device does not have it.
            if one.admin_access == Some(true) {
                continue;
            }
            let pools = self.uses.entry(one.driver.clone()).or_default();
            let devices = pools.entry(one.pool.clone()).or_default();
            let known = devices.entry(one.device.clone()).or_default();
            if one.share_id.is_none() {
                known.is_whole = true;
                continue;
            }
            known.is_shared = true;
            for (name, consumed) in one.consumed_capacity.iter().flatten() {
                let sum = known.consumed.entry(name.clone()).or_insert(Amount::ZERO);
                *sum = sum.plus(amount(consumed));
            }
        }
    }

    pub fn used(&self, driver: &str, pool: &str, device: &str) -> Option<&Use> {
        self.uses.get(driver)?.get(pool)?.get(device)
    }

    /// The slices that may have devices for a node, by name.
    pub fn slices_for(&self, node: &str) -> impl Iterator<Item = &ResourceSlice> {
        let own = self.of_node.get(node).map_or(&[][..], Vec::as_slice);
        let mut places = [own, &self.of_any].concat();
        places.sort_unstable();
        places.into_iter().map(|place| &*self.slices[place])
    }
}

pub fn has_counters(slice: &ResourceSlice) -> bool {
    let counters = slice.spec.shared_counters.as_ref();
    counters.is_some_and(|counters| !counters.is_empty())
}

/// The API lets in nothing else than amounts.
pub fn amount(quantity: &Quantity) -> Amount {
    Amount::parse(&quantity.0).unwrap_or(Amount::ZERO)
}
