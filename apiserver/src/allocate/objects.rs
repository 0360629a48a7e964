//! The objects behind the addresses: ServiceCIDRs, which networks there are, and IPAddresses, which
//! of their addresses are given out.

use super::Range;
use crate::registry::{Refusal, Registry, Stored};
use crate::view::{self, View};
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::resource::{Durability, Resource};
use coracle_store::{Expect, Snapshot, Store};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::net::IpAddr;

pub const GROUP: &str = "networking.k8s.io";
pub const CIDRS: &str = "servicecidrs";
pub const ADDRESSES: &str = "ipaddresses";

const FAMILY_LABEL: &str = "ipaddress.kubernetes.io/ip-family";
const MANAGER_LABEL: &str = "ipaddress.kubernetes.io/managed-by";
const MANAGER: &str = "ipallocator.k8s.io";

/// The networks that addresses may be taken from now, and those that are taken.
#[derive(Debug)]
pub struct Pool<'a> {
    ranges: Vec<Range>,
    /// By name, which is the address.
    given: Snapshot,
    taken: &'a HashSet<IpAddr>,
    dry_run: bool,
}

/// Every address of a family is given out.
#[derive(Debug)]
pub struct Full;

impl<'a> Pool<'a> {
    pub fn read(store: &Store, taken: &'a HashSet<IpAddr>, dry_run: bool) -> Self {
        let mut ranges = Vec::new();
        for object in store.list(GROUP, CIDRS, None) {
            if object.is_deleting() || !is_ready(&object) {
                continue;
            }
            let cidrs = object.list(&["spec", "cidrs"]).iter();
            for range in cidrs.filter_map(|cidr| Range::of_object(cidr.as_str()?)) {
                if !ranges.contains(&range) {
                    ranges.push(range);
                }
            }
        }
        Self {
            ranges,
            given: store.snapshot(&view::partition(GROUP, ADDRESSES)),
            taken,
            dry_run,
        }
    }

    fn is_free(&self, address: IpAddr) -> bool {
        !self.taken.contains(&address) && self.given.get(&address.to_string()).is_none()
    }

    /// A free address of a family. A trial takes none: it is shown the network's own.
    pub fn any(&self, family: &str) -> Result<IpAddr, Full> {
        let mut ranges = self.ranges.iter().filter(|range| range.family() == family);
        if self.dry_run {
            return ranges.next().map(Range::base).ok_or(Full);
        }
        ranges
            .find_map(|range| range.any(|address| self.is_free(address)))
            .ok_or(Full)
    }

    /// Why an address that is asked for cannot be had.
    pub fn this(&self, address: IpAddr) -> Result<(), &'static str> {
        if !self.ranges.iter().any(|range| range.contains(address)) {
            return Err("the provided network does not match the current range");
        }
        if !self.dry_run && !self.is_free(address) {
            return Err("provided IP is already allocated");
        }
        Ok(())
    }
}

/// All networks, ready or not.
pub fn networks(store: &Store) -> Vec<Range> {
    let objects = store.list(GROUP, CIDRS, None);
    let cidrs = objects.iter().flat_map(|one| one.list(&["spec", "cidrs"]));
    cidrs
        .filter_map(|cidr| Range::of_object(cidr.as_str()?))
        .collect()
}

/// A network that nobody has looked after yet is taken as ready.
fn is_ready(object: &Object) -> bool {
    object
        .list(&["status", "conditions"])
        .iter()
        .find(|condition| json::text(condition, "type") == "Ready")
        .is_none_or(|condition| json::text(condition, "status") == "True")
}

/// The row of IPAddresses.
pub fn addresses_row() -> &'static Resource {
    coracle_api::catalogue::find(GROUP, "v1", ADDRESSES)
        .expect("the catalogue has the kinds of networking.k8s.io")
}

/// Writes down that a Service has an address.
pub async fn create(
    registry: &Registry,
    service: &Object,
    address: IpAddr,
    now: &str,
) -> Result<(), Refusal> {
    let mut object = Object::new("networking.k8s.io/v1", "IPAddress");
    object.set(
        &["metadata"],
        json!({
            "name": address.to_string(),
            "uid": uuid::Uuid::new_v4().to_string(),
            "creationTimestamp": now,
            "labels": {
                FAMILY_LABEL: family(address),
                MANAGER_LABEL: MANAGER,
            },
        }),
    );
    let parent = json!({
        "resource": super::PLURAL, "namespace": service.namespace(), "name": service.name(),
    });
    object.set(&["spec", "parentRef"], parent);
    let row = addresses_row();
    let durability = Durability::Synced;
    registry
        .put(row, &object, Expect::Absent, durability)
        .await
        .map(drop)
}

/// True for the address of a Service.
pub fn belongs_to(address: &Object, namespace: &str, name: &str) -> bool {
    let parent = address.get(&["spec", "parentRef"]);
    let text = |field| parent.map_or("", |parent| json::text(parent, field));
    text("group").is_empty()
        && text("resource") == super::PLURAL
        && text("namespace") == namespace
        && text("name") == name
}

/// True for an object that was made here.
pub fn is_ours(address: &Object) -> bool {
    address.label(MANAGER_LABEL) == Some(MANAGER)
}

/// True for an object that is labelled as those made here.
pub fn is_labelled(object: &Object, address: IpAddr) -> bool {
    is_ours(object) && object.label(FAMILY_LABEL) == Some(family(address))
}

fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

/// The Service that has the address.
pub fn parent(address: &Object) -> Option<(&str, &str)> {
    let parent = address.get(&["spec", "parentRef"])?;
    let text = |field| json::text(parent, field);
    let is_service = text("group").is_empty() && text("resource") == super::PLURAL;
    is_service.then(|| (json::text(parent, "namespace"), json::text(parent, "name")))
}

/// Writes down that a Service has an address of which something else is written.
pub async fn replace(
    registry: &Registry,
    stored: &Stored,
    service: &Object,
    address: IpAddr,
    now: &str,
) -> Result<(), Refusal> {
    free(registry, stored).await?;
    create(registry, service, address, now).await
}

/// Frees an address, whosever it is.
pub async fn free(registry: &Registry, stored: &Stored) -> Result<(), Refusal> {
    let row = addresses_row();
    let expect = Expect::At(stored.revision);
    let durability = Durability::Synced;
    let deleted = registry.delete(row, &stored.object, expect, durability);
    deleted.await.map(drop)
}

/// Frees addresses, as far as they are the Service's. What cannot be freed now is found by the next
/// repair.
pub async fn delete(registry: &Registry, service: &Object, addresses: &[IpAddr]) {
    let row = addresses_row();
    for address in addresses {
        let name = address.to_string();
        let Ok(stored) = registry.get(row, "", &name) else {
            continue;
        };
        if !belongs_to(&stored.object, service.namespace(), service.name()) {
            continue;
        }
        if let Err(error) = free(registry, &stored).await {
            tracing::warn!(%address, %error, "an address was not freed");
        }
    }
}

/// The default ServiceCIDR of these networks.
pub fn default_cidr(ranges: &[Range]) -> Value {
    let cidrs: Vec<String> = ranges.iter().map(ToString::to_string).collect();
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": { "name": "kubernetes" },
        "spec": { "cidrs": cidrs },
    })
}
