//! Who gets which address. Pure: the same Services, nodes and pool give the same.

use super::backends::NodeNames;
use super::balanced::{Balanced, Known, server};
use super::places::Place;
use super::pool::AddressPool;
use coracle_client::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Granted {
    Addresses(Vec<IpAddr>),
    /// An older Service has one of its ports.
    Taken {
        by: ObjectKey,
    },
    /// There is no node, or no address left of what it wants.
    None,
    /// It is not known yet which nodes have its endpoints: what it has stays.
    Unknown,
}

/// What Services have addresses of.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'a> {
    pub places: &'a [Place],
    /// The nodes of each Service that is local, as far as they are known.
    pub local: &'a BTreeMap<ObjectKey, NodeNames>,
    /// In place of nodes, if it has any.
    pub pool: &'a AddressPool,
}

pub fn grants(known: &Known, stage: &Stage<'_>) -> BTreeMap<ObjectKey, Granted> {
    let mut by_age: Vec<_> = known.services.iter().collect();
    by_age.sort_by_key(|(key, service)| (service.created, *key));
    if stage.pool.is_empty() {
        of_nodes(&by_age, stage, known.server_port)
    } else {
        of_pool(&by_age, stage.pool)
    }
}

type ByAge<'a> = [(&'a ObjectKey, &'a Balanced)];

fn of_nodes(
    services: &ByAge<'_>,
    stage: &Stage<'_>,
    server_port: Option<i32>,
) -> BTreeMap<ObjectKey, Granted> {
    // Nobody would reach the API server on its node any more.
    let server = (server(), server_port.map(|port| ("TCP".to_owned(), port)));
    let mut owners: BTreeMap<&(String, i32), &ObjectKey> = BTreeMap::new();
    owners.extend(server.1.iter().map(|port| (port, &server.0)));
    let mut granted = BTreeMap::new();
    for (key, service) in services {
        let owner = service.ports.iter().find_map(|port| owners.get(port));
        if let Some(by) = owner {
            let by = ObjectKey::clone(by);
            granted.insert(ObjectKey::clone(key), Granted::Taken { by });
            continue;
        }
        owners.extend(service.ports.iter().map(|port| (port, *key)));
        granted.insert(ObjectKey::clone(key), at_places(key, service, stage));
    }
    granted
}

fn at_places(key: &ObjectKey, service: &Balanced, stage: &Stage<'_>) -> Granted {
    let named = stage.local.get(key);
    if service.is_local && named.is_none() {
        return Granted::Unknown;
    }
    let named = named.filter(|_| service.is_local);
    let places = stage.places.iter();
    let places = places.filter(|place| named.is_none_or(|named| named.contains(&place.name)));
    let addresses = places.flat_map(|place| place.addresses.iter().copied());
    or_none(
        addresses
            .filter(|address| service.wants(*address))
            .collect(),
    )
}

fn of_pool(services: &ByAge<'_>, pool: &AddressPool) -> BTreeMap<ObjectKey, Granted> {
    let mut taken: BTreeSet<IpAddr> = BTreeSet::new();
    let mut kept: BTreeMap<&ObjectKey, Vec<IpAddr>> = BTreeMap::new();
    // Who has one keeps it; whoever is older keeps one that two have.
    for (key, service) in services {
        let valid = service.addresses.iter().copied();
        let valid = valid.filter(|address| pool.contains(*address) && service.wants(*address));
        let valid = valid.filter(|address| is_as_asked(service, *address));
        let own: Vec<_> = valid.filter(|address| taken.insert(*address)).collect();
        kept.insert(key, own);
    }
    let mut granted = BTreeMap::new();
    for (key, service) in services {
        let mut addresses = kept.remove(key).unwrap_or_default();
        for is_ipv4 in [true, false] {
            let wants = if is_ipv4 {
                service.wants_ipv4
            } else {
                service.wants_ipv6
            };
            let own: Vec<_> = addresses
                .iter()
                .filter(|of| of.is_ipv4() == is_ipv4)
                .collect();
            if !wants || !own.is_empty() {
                continue;
            }
            let mut free = pool
                .addresses(is_ipv4)
                .filter(|address| !taken.contains(address) && is_as_asked(service, *address));
            if let Some(address) = free.next() {
                taken.insert(address);
                addresses.push(address);
            }
        }
        granted.insert(ObjectKey::clone(key), or_none(addresses));
    }
    granted
}

/// What it asks for is of one family; of the other any will do.
fn is_as_asked(service: &Balanced, address: IpAddr) -> bool {
    service
        .asked
        .is_none_or(|asked| asked == address || asked.is_ipv4() != address.is_ipv4())
}

fn or_none(addresses: Vec<IpAddr>) -> Granted {
    if addresses.is_empty() {
        Granted::None
    } else {
        Granted::Addresses(addresses)
    }
}

#[cfg(test)]
mod tests;
