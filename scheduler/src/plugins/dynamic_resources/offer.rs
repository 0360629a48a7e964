//! How many devices a node has for an extended resource, and how many of them are taken: what scores
//! go by where no device plugin gives it. Pure.
//!
//! As upstream counts: each device that the class selects is one, whether or not its pool is whole.

use super::allocator::{Stock, devices_for};
use super::expressions::{Compiled, Expressions, device_seen};
use crate::devices::Devices;
use crate::node_info::NodeInfo;
use crate::resources::Resources;
use k8s_openapi::api::resource::v1::{Device, DeviceClass};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Where it is looked up.
#[derive(Debug, Default)]
pub struct Offers {
    devices: Arc<Mutex<Devices>>,
    expressions: Expressions,
}

/// As it is during one cycle.
#[derive(Clone, Debug)]
pub struct Offer(Arc<Offered>);

#[derive(Debug)]
struct Offered {
    stock: Stock,
    compiled: Compiled,
    /// By resource.
    classes: HashMap<String, Arc<DeviceClass>>,
}

impl Offers {
    pub fn new(devices: Arc<Mutex<Devices>>) -> Self {
        Self {
            devices,
            expressions: Expressions::default(),
        }
    }

    /// Of each scalar that is asked for, whether a class stands behind it; `None` where it is so of
    /// none.
    pub fn backed(&self, asked: &Resources) -> Option<Box<[bool]>> {
        if asked.scalars.is_empty() {
            return None;
        }
        let devices = self.devices.lock();
        let all = asked.scalars.iter();
        let backed: Box<[bool]> = all
            .map(|(name, _)| devices.class_behind(name).is_some())
            .collect();
        backed.contains(&true).then_some(backed)
    }

    /// Of those resources that a class stands behind; `None` where there is no such.
    pub fn of<'a>(&self, resources: impl Iterator<Item = &'a str>) -> Option<Offer> {
        let mut resources = resources.peekable();
        resources.peek()?;
        let devices = self.devices.lock();
        let classes = resources.filter_map(|name| {
            let class = devices.class_behind(name)?;
            Some((name.to_owned(), Arc::clone(class)))
        });
        let classes: HashMap<_, _> = classes.collect();
        if classes.is_empty() {
            return None;
        }
        let slices = devices.slices().cloned().collect();
        let stock = Stock::new(slices, HashMap::new(), devices.allocations());
        drop(devices);
        let selectors = classes.values().flat_map(|class| &class.spec.selectors);
        let compiled = self.expressions.compile(selectors.flatten());
        Some(Offer(Arc::new(Offered {
            stock,
            compiled,
            classes,
        })))
    }
}

impl Offer {
    /// How many the node has, and how many of them claims have. None where the class is wrong.
    pub fn on(&self, resource: &str, node: &NodeInfo) -> (i64, i64) {
        self.0.on(resource, node).unwrap_or_default()
    }
}

impl Offered {
    fn on(&self, resource: &str, node: &NodeInfo) -> Option<(i64, i64)> {
        let class = self.classes.get(resource)?;
        let (mut all, mut taken) = (0, 0);
        for slice in self.stock.slices_for(&node.name) {
            let (driver, pool) = (&*slice.spec.driver, &*slice.spec.pool.name);
            for device in devices_for(slice, node) {
                if !self.is_selected(class, driver, device)? {
                    continue;
                }
                all += 1;
                let used = self.stock.used(driver, pool, &device.name);
                taken += i64::from(used.is_some_and(|used| used.is_whole || used.is_shared));
            }
        }
        Some((all, taken))
    }

    fn is_selected(&self, class: &DeviceClass, driver: &str, device: &Device) -> Option<bool> {
        let seen = device_seen(device, driver);
        let selectors = class.spec.selectors.iter().flatten();
        for cel in selectors.filter_map(|one| one.cel.as_ref()) {
            let expression = self.compiled.get(&cel.expression)?;
            let is_it = expression.as_ref().as_ref().ok()?.matches(&seen).ok()?;
            if !is_it {
                return Some(false);
            }
        }
        Some(true)
    }
}
