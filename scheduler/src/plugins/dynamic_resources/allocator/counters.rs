//! What the devices of a pool share, and how much of it is left.

use super::pools::{Pool, devices};
use super::stock::{Stock, amount};
use coracle_api::quantity::Quantity as Amount;
use k8s_openapi::api::resource::v1::Device;
use std::collections::BTreeMap;

/// What is left, by counter set and counter.
#[derive(Debug)]
pub struct Counters<'a>(BTreeMap<(&'a str, &'a str), Amount>);

impl<'a> Counters<'a> {
    /// Less what allocated devices take, also those for other nodes.
    pub fn of(pool: &Pool<'a>, stock: &Stock) -> Self {
        let sets = pool.counters.iter();
        let all = sets.flat_map(|(set, counters)| {
            let counters = counters.counters.iter();
            counters.map(|(name, counter)| ((*set, &**name), amount(&counter.value)))
        });
        let mut left = Self(all.collect());
        let slices = pool.here.iter().chain(&pool.elsewhere);
        for device in slices.flat_map(|slice| devices(slice)) {
            if stock.used(pool.driver, pool.name, &device.name).is_some() {
                left.each(device, |left, taken| left.minus(taken));
            }
        }
        left
    }

    fn each(&mut self, device: &'a Device, change: impl Fn(Amount, Amount) -> Amount) {
        for set in device.consumes_counters.iter().flatten() {
            for (name, counter) in &set.counters {
                if let Some(left) = self.0.get_mut(&(&*set.counter_set, &**name)) {
                    *left = change(*left, amount(&counter.value));
                }
            }
        }
    }

    /// False, and nothing is taken, where there is too little.
    pub fn take(&mut self, device: &'a Device) -> bool {
        self.each(device, |left, taken| left.minus(taken));
        let is_enough = self.0.values().all(|left| !left.is_negative());
        if !is_enough {
            self.give_back(device);
        }
        is_enough
    }

    pub fn give_back(&mut self, device: &'a Device) {
        self.each(device, |left, taken| left.plus(taken));
    }
}
