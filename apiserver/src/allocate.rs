//! Addresses and node ports of Services, given out under one lock.
//!
//! What is taken is read off the stored Services, so nothing is ever leaked: an address is free
//! again when the Service that had it is gone. The lock is held from the choice to the commit.

use coracle_api::field::{ErrorList, FieldError, Path};
use coracle_api::json;
use coracle_api::kinds::service::view::Service;
use coracle_api::object::Object;
use coracle_api::resource::Resource;
use coracle_store::{Revision, Store};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::{Mutex, OwnedMutexGuard};

pub mod ports; // Node ports.
pub mod range; // The network that addresses come from.

pub use range::{Range, RangeError};

const GROUP: &str = "";
const PLURAL: &str = "services";

/// Gives out addresses of one network and ports of one range.
#[derive(Debug)]
pub struct Allocator {
    range: Range,
    taken: Arc<Mutex<Taken>>,
}

/// The one who may choose and write a Service; everybody else waits until this is dropped.
#[derive(Debug)]
pub struct Hold {
    range: Range,
    taken: OwnedMutexGuard<Taken>,
}

/// What each stored Service has, kept by key and read anew only where something changed.
#[derive(Debug, Default)]
struct Taken(HashMap<String, Share>);

#[derive(Debug)]
struct Share {
    modified: Revision,
    addresses: Vec<IpAddr>,
    ports: Vec<i64>,
}

impl Allocator {
    pub fn new(cidr: &str) -> Result<Self, RangeError> {
        Ok(Self {
            range: Range::parse(cidr)?,
            taken: Arc::default(),
        })
    }

    /// The lock, when a resource is one that gets something here.
    pub async fn hold_for(&self, resource: &Resource) -> Option<Hold> {
        if resource.stored_as != (GROUP, PLURAL) {
            return None;
        }
        Some(Hold {
            range: self.range,
            taken: Arc::clone(&self.taken).lock_owned().await,
        })
    }
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
            let addresses = service.cluster_ips().iter().filter_map(address).collect();
            let share = Share {
                modified: entry.modified,
                addresses,
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

fn address(value: &Value) -> Option<IpAddr> {
    value.as_str()?.parse().ok()
}

impl Hold {
    /// Fills in what the Service needs and does not have, and checks what it asks for itself.
    pub fn assign(
        &mut self,
        store: &Store,
        object: &mut Object,
        old: Option<&Object>,
    ) -> Result<(), ErrorList> {
        self.taken.follow(store);
        let (addresses, mut ports) = self.taken.others(&object.key().to_string());
        families(object, old, self.range.family())?;
        let mut errors = ErrorList::new();
        errors.extend(self.assign_address(object, old, &addresses).err());
        if let Err(more) = ports::assign(object, &mut ports) {
            errors.extend(more);
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors)
        }
    }

    fn assign_address(
        &self,
        object: &mut Object,
        old: Option<&Object>,
        taken: &HashSet<IpAddr>,
    ) -> Result<(), FieldError> {
        let service = Service::of(object);
        if !service.needs_cluster_ip() {
            return Ok(());
        }
        let asked = json::text(service.spec, "clusterIP").to_owned();
        let path = Path::root("spec").child("clusterIPs").index(0);
        let chosen = match asked.as_str() {
            "None" => "None".to_owned(),
            "" => {
                let free = self.range.any(|address| !taken.contains(&address));
                let free = free.ok_or_else(|| {
                    FieldError::invalid(&path, "", "failed to allocate a serviceIP: range is full")
                })?;
                free.to_string()
            }
            text => {
                let kept = old.is_some_and(|old| old.str(&["spec", "clusterIP"]) == text);
                match text.parse::<IpAddr>() {
                    Ok(address) if !kept => self.check(address, taken, &path)?,
                    // Validation says what is wrong with it.
                    _ => {}
                }
                asked.clone()
            }
        };
        if asked.is_empty() {
            object.set(&["spec", "clusterIP"], chosen.as_str().into());
        }
        if object.list(&["spec", "clusterIPs"]).is_empty() {
            object.set(&["spec", "clusterIPs"], json!([chosen]));
        }
        Ok(())
    }

    fn check(
        &self,
        address: IpAddr,
        taken: &HashSet<IpAddr>,
        path: &Path,
    ) -> Result<(), FieldError> {
        let why = if !self.range.contains(address) {
            format!(
                "the provided IP ({address}) is not in the valid range. The range of valid IPs is \
                 {}",
                self.range
            )
        } else if taken.contains(&address) {
            "provided IP is already allocated".to_owned()
        } else {
            return Ok(());
        };
        let detail = format!("failed to allocate IP {address}: {why}");
        Err(FieldError::invalid(path, address.to_string(), detail))
    }
}

/// Which families of addresses a Service has, where the client does not say; what this cluster has
/// no addresses for is refused.
fn families(
    object: &mut Object,
    old: Option<&Object>,
    family: &'static str,
) -> Result<(), ErrorList> {
    if !Service::of(object).needs_cluster_ip() {
        return Ok(());
    }
    let is_headless = object.str(&["spec", "clusterIP"]) == "None";
    let selects = object.string_map(&["spec", "selector"]).next().is_some();
    // Its endpoints are made by hand and may be of any family, whatever this cluster has.
    let is_any = is_headless && !selects;
    if object.str(&["spec", "ipFamilyPolicy"]).is_empty() {
        let before = old.map_or("", |old| old.str(&["spec", "ipFamilyPolicy"]));
        let policy = match before {
            "" if is_any => "RequireDualStack",
            "" => "SingleStack",
            before => before,
        };
        object.set(&["spec", "ipFamilyPolicy"], policy.into());
    }
    if !is_any {
        refuse_missing(object, family)?;
    }
    let mut families = object.list(&["spec", "ipFamilies"]).to_vec();
    if families.is_empty() {
        families.push(family.into());
    }
    let wants_both = object.str(&["spec", "ipFamilyPolicy"]) != "SingleStack";
    if is_any && wants_both && families.len() == 1 {
        let is_v4 = families[0] == "IPv4";
        families.push(if is_v4 { "IPv6" } else { "IPv4" }.into());
    }
    object.set(&["spec", "ipFamilies"], families.into());
    Ok(())
}

/// Says which families a Service asks for that this cluster does not have: it has one.
fn refuse_missing(object: &Object, family: &'static str) -> Result<(), ErrorList> {
    let mut errors = ErrorList::new();
    let policy = object.str(&["spec", "ipFamilyPolicy"]);
    let spec = Path::root("spec");
    if policy == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        let path = spec.child("ipFamilyPolicy");
        errors.push(FieldError::invalid(&path, policy, detail));
    }
    let asked = object.list(&["spec", "ipFamilies"]);
    for (index, asked) in asked.iter().enumerate().filter(|(_, one)| **one != family) {
        let path = spec.child("ipFamilies").index(index);
        let detail = "not configured on this cluster";
        errors.push(FieldError::invalid(&path, asked.clone(), detail));
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

#[cfg(test)]
mod tests;
