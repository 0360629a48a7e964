//! Addresses and node ports of Services, given out under one lock.
//!
//! Addresses come from the networks of ServiceCIDR objects, and each one given out has an IPAddress
//! object that names its Service. Node ports that are taken are read off the stored Services, so
//! nothing is ever leaked. The lock is held from the choice to the commit.

use crate::registry::Registry;
use coracle_api::field::FieldError;
use coracle_api::kinds::service::view::Service;
use coracle_api::object::Object;
use coracle_api::resource::Resource;
use coracle_api::status::Status;
use coracle_store::{Revision, Store};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::{Mutex, OwnedMutexGuard};

mod addresses; // Which addresses a Service gets, keeps and gives back.
mod families; // Which families of addresses a Service has.
mod objects; // The objects behind the addresses: ServiceCIDRs and IPAddresses.
pub mod ports; // Node ports.
pub mod range; // A network that addresses come from.
pub mod repair; // Brings IPAddress objects in line with the Services.

pub use objects::default_cidr;
pub use range::{Range, RangeError};

const GROUP: &str = "";
const PLURAL: &str = "services";
/// One of each family.
const RANGES_MAX: usize = 2;

/// Gives out addresses of this cluster's families, and ports of one range.
#[derive(Debug)]
pub struct Allocator {
    /// The one that Services have when they do not say is first.
    families: Arc<[&'static str]>,
    taken: Arc<Mutex<Taken>>,
}

/// The one who may choose and write a Service; everybody else waits until this is dropped.
#[derive(Debug)]
pub struct Hold {
    families: Arc<[&'static str]>,
    taken: OwnedMutexGuard<Taken>,
    /// What the Service being written gets, and what it gives back once it is written.
    change: addresses::AddressChange,
}

/// What each stored Service has, kept by key and read anew only where something changed.
#[derive(Debug, Default)]
struct Taken(HashMap<String, Share>);

#[derive(Debug)]
struct Share {
    created: Revision,
    modified: Revision,
    addresses: Vec<IpAddr>,
    ports: Vec<i64>,
}

/// The networks of `--service-cidr`: one, or one of each family with a comma between them.
pub fn ranges(cidrs: &str) -> Result<Vec<Range>, RangeError> {
    let ranges: Vec<Range> = cidrs
        .split(',')
        .map(|cidr| Range::parse(cidr.trim()))
        .collect::<Result<_, _>>()?;
    match ranges.as_slice() {
        [first, second] if first.family() == second.family() => Err(RangeError::SameFamily),
        all if all.len() > RANGES_MAX => Err(RangeError::SameFamily),
        _ => Ok(ranges),
    }
}

impl Allocator {
    pub fn new(cidrs: &str) -> Result<Self, RangeError> {
        let families = ranges(cidrs)?.iter().map(Range::family).collect();
        Ok(Self {
            families,
            taken: Arc::default(),
        })
    }

    async fn hold(&self) -> Hold {
        Hold {
            families: Arc::clone(&self.families),
            taken: Arc::clone(&self.taken).lock_owned().await,
            change: addresses::AddressChange::default(),
        }
    }

    /// The lock, when a resource is one that gets something here.
    pub async fn hold_for(&self, resource: &Resource) -> Option<Hold> {
        if is_service(resource) {
            Some(self.hold().await)
        } else {
            None
        }
    }

    /// Gives back the addresses of an object that is gone.
    pub async fn release(&self, registry: &Registry, resource: &Resource, gone: &Object) {
        if is_service(resource) {
            let addresses = cluster_addresses(&Service::of(gone));
            objects::delete(registry, gone, &addresses).await;
        }
    }
}

fn is_service(resource: &Resource) -> bool {
    resource.stored_as == (GROUP, PLURAL)
}

impl Taken {
    fn follow(&mut self, store: &Store) {
        let snapshot = store.snapshot(&crate::view::partition(GROUP, PLURAL));
        self.0.retain(|key, _| snapshot.get(key).is_some());
        for (key, entry) in snapshot.range_from("", "") {
            let known = self.0.get(&**key);
            if known.is_some_and(|share| share.modified == entry.modified) {
                continue;
            }
            let Some(object) = crate::view::decode(&entry.value) else {
                continue;
            };
            let service = Service::of(&object);
            let share = Share {
                created: entry.created,
                modified: entry.modified,
                addresses: cluster_addresses(&service),
                ports: ports::of(&service),
            };
            self.0.insert(key.to_string(), share);
        }
    }

    /// What all but the named Service have.
    fn others(&self, own: &str) -> (HashSet<IpAddr>, HashSet<i64>) {
        let others = || self.0.iter().filter(|(key, _)| *key != own);
        let addresses = others().flat_map(|(_, share)| share.addresses.iter().copied());
        let ports = others().flat_map(|(_, share)| share.ports.iter().copied());
        (addresses.collect(), ports.collect())
    }
}

/// Those that were allocated: an ExternalName has none, and neither has a headless Service.
fn cluster_addresses(service: &Service<'_>) -> Vec<IpAddr> {
    if !service.needs_cluster_ip() {
        return Vec::new();
    }
    service.cluster_ips().iter().filter_map(address).collect()
}

fn address(value: &Value) -> Option<IpAddr> {
    value.as_str()?.parse().ok()
}

impl Hold {
    /// Fills in what the Service needs and does not have, and checks what it asks for itself. What
    /// is refused here is refused before anything else is looked at, as upstream.
    pub fn assign(
        &mut self,
        store: &Store,
        object: &mut Object,
        old: Option<&Object>,
        dry_run: bool,
    ) -> Result<(), Status> {
        self.taken.follow(store);
        let (taken, mut ports) = self.taken.others(&object.key().to_string());
        let invalid = |object: &Object, errors: &[FieldError]| {
            let subject = coracle_api::status::Subject {
                group: GROUP,
                resource: "Service",
                name: object.name(),
            };
            Err(Status::invalid(subject, errors))
        };
        if let Err(errors) = families::settle(object, old, &self.families) {
            return invalid(object, &errors);
        }
        let pool = objects::Pool::read(store, &taken, dry_run);
        self.change = match addresses::assign(object, old, &pool) {
            Ok(change) => change,
            Err(addresses::Fault::Field(error)) => return invalid(object, &[error]),
            Err(addresses::Fault::Full) => {
                let name = object.name();
                let full =
                    format!("failed to allocate a serviceIP for Service {name:?}: range is full");
                return Err(Status::internal(full));
            }
        };
        match ports::assign(object, old, &mut ports) {
            Ok(()) => Ok(()),
            Err(ports::Fault::Field(error)) => invalid(object, &[error]),
            Err(ports::Fault::Internal(why)) => Err(Status::internal(why)),
        }
    }

    /// Writes down who has the new addresses, before the Service is written.
    pub async fn claim(
        &mut self,
        registry: &Registry,
        service: &Object,
        now: &str,
    ) -> Result<(), Status> {
        for (place, address) in self.change.gets.iter().enumerate() {
            if let Err(refusal) = objects::create(registry, service, *address, now).await {
                let done = self.change.gets[..place].to_vec();
                objects::delete(registry, service, &done).await;
                return Err(refusal.status(objects::addresses_row(), &address.to_string()));
            }
        }
        Ok(())
    }

    /// Once the Service is written, what it had before is free; if it was not, what it would have
    /// had.
    pub async fn finish(&mut self, registry: &Registry, service: &Object, is_written: bool) {
        let change = std::mem::take(&mut self.change);
        let free = if is_written {
            change.gives_back
        } else {
            change.gets
        };
        objects::delete(registry, service, &free).await;
    }
}

#[cfg(test)]
mod tests;
