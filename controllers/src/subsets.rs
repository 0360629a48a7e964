//! The canonical form of the subsets of Endpoints. Pure.
//!
//! Addresses that have the same ports are in one subset; one that is not ready for some port is not
//! ready there, whoever says otherwise. Everything is sorted as upstream sorts it.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset};

use crate::wire_order::Order;

/// Addresses by their number, and whether each is ready.
type Ready = BTreeMap<usize, bool>;

#[derive(Default)]
struct Packing {
    addresses: Vec<EndpointAddress>,
    /// An address is known by itself and its target's uid.
    numbers: HashMap<(String, String), usize>,
    /// None stands for subsets without ports.
    by_port: BTreeMap<Option<Order>, (Option<EndpointPort>, Ready)>,
}

pub(crate) fn repack(subsets: &[EndpointSubset]) -> Vec<EndpointSubset> {
    let mut packing = Packing::default();
    for subset in subsets {
        let ports = subset.ports.as_deref().unwrap_or_default();
        if ports.is_empty() {
            packing.add(subset, None);
        }
        for port in ports {
            packing.add(subset, Some(port));
        }
    }
    packing.into_subsets()
}

fn uid(address: &EndpointAddress) -> Option<&str> {
    let target = address.target_ref.as_ref()?;
    Some(target.uid.as_deref().unwrap_or_default())
}

impl Packing {
    fn add(&mut self, subset: &EndpointSubset, port: Option<&EndpointPort>) {
        let ready = subset.addresses.iter().flatten();
        let not_ready = subset.not_ready_addresses.iter().flatten();
        let all = ready
            .map(|address| (address, true))
            .chain(not_ready.map(|address| (address, false)));
        for (address, is_ready) in all {
            let number = self.number_of(address);
            let entry = self.by_port.entry(port.map(Order::of_port));
            let (_, ready) = entry.or_insert_with(|| (port.cloned(), Ready::new()));
            *ready.entry(number).or_insert(true) &= is_ready;
        }
    }

    fn number_of(&mut self, address: &EndpointAddress) -> usize {
        let key = (
            address.ip.clone(),
            uid(address).unwrap_or_default().to_owned(),
        );
        *self.numbers.entry(key).or_insert_with(|| {
            self.addresses.push(address.clone());
            self.addresses.len() - 1
        })
    }

    fn into_subsets(self) -> Vec<EndpointSubset> {
        let mut by_addresses: BTreeMap<Ready, Vec<EndpointPort>> = BTreeMap::new();
        for (port, ready) in self.by_port.into_values() {
            by_addresses.entry(ready).or_default().extend(port);
        }
        let mut subsets: Vec<EndpointSubset> = Vec::new();
        for (ready, mut ports) in by_addresses {
            let those = |wanted: bool| {
                let numbers = ready.iter().filter(|(_, ready)| **ready == wanted);
                let mut those: Vec<EndpointAddress> = numbers
                    .map(|(number, _)| self.addresses[*number].clone())
                    .collect();
                those.sort_by(|a, b| (&a.ip, uid(a)).cmp(&(&b.ip, uid(b))));
                (!those.is_empty()).then_some(those)
            };
            ports.sort_by_cached_key(Order::of_port);
            subsets.push(EndpointSubset {
                addresses: those(true),
                not_ready_addresses: those(false),
                ports: (!ports.is_empty()).then_some(ports),
            });
        }
        subsets.sort_by_cached_key(Order::of_subset);
        subsets
    }
}

#[cfg(test)]
mod tests;
