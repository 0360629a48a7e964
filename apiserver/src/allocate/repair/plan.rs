//! What is wrong with an address or a Service, what is said of it, and how it is mended. Pure;
//! reasons, actions and notes are upstream's.

use crate::allocate::objects;
use coracle_api::json;
use coracle_api::kinds::service::view::Service;
use coracle_api::object::Object;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

/// The Service of an address this young may be about to be written by another server. As upstream.
pub const GRACE: Duration = Duration::from_secs(60);
/// And a write of a Service may be about to be taken back.
const GRACE_OF_WRITES: Duration = Duration::from_secs(5);

const OF_SERVICES: &str = "ClusterIPAllocation";
const OF_ADDRESSES: &str = "IPAddressAllocation";
pub const OF_PORTS: &str = "PortAllocation";

/// An event to be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Tell {
    pub about: Object,
    pub reason: &'static str,
    pub action: &'static str,
    pub note: String,
}

/// An address, and everything that has to do with it.
#[derive(Debug)]
pub struct Seen<'a> {
    pub address: IpAddr,
    pub object: Option<&'a Object>,
    /// The Services that have it, the oldest first.
    pub owners: &'a [Object],
    /// The Service that the object names.
    pub parent: Option<&'a Object>,
    /// Whether a network of Services contains it.
    pub is_in_network: bool,
}

#[derive(Debug, PartialEq)]
pub enum Mend<'a> {
    Nothing,
    /// Writes down that a Service has the address.
    Create(&'a Object),
    /// The same, in the place of what says otherwise.
    Replace(&'a Object),
    Delete,
    /// It may be well by then.
    LookAgainIn(Duration),
}

pub fn address<'a>(seen: &Seen<'a>, now: Timestamp) -> (Mend<'a>, Vec<Tell>) {
    let Some(oldest) = seen.owners.first() else {
        return match seen.object {
            Some(object) if objects::is_ours(object) => orphan(seen, object, now),
            _ => (Mend::Nothing, Vec::new()),
        };
    };
    let (address, family) = (seen.address, family(seen.address));
    if !seen.is_in_network {
        let note = format!(
            "Cluster IP [{family}]: {address} is not within any configured Service CIDR; please \
             recreate service"
        );
        let told = seen.owners.iter();
        let told = told.map(|owner| of_service(owner, "ClusterIPOutOfRange", note.clone()));
        return (Mend::Nothing, told.collect());
    }
    let is_named = |owner: &&Object| {
        let (namespace, name) = (owner.namespace(), owner.name());
        let object = seen.object;
        object.is_some_and(|object| objects::belongs_to(object, namespace, name))
    };
    let named = seen.owners.iter().find(is_named);
    let keeper = named.unwrap_or(oldest);
    let (mend, note) = match seen.object {
        None => (
            Mend::Create(keeper),
            Some(format!(
                "Cluster IP [{family}]: {address} is not allocated; repairing"
            )),
        ),
        Some(_) if named.is_none() => {
            let (namespace, name) = (keeper.namespace(), keeper.name());
            let note = format!(
                "the ClusterIP [{family}]: {address} for Service {namespace}/{name} has a wrong \
                 reference; repairing"
            );
            (Mend::Replace(keeper), Some(note))
        }
        Some(object) if !objects::is_labelled(object, address) => (Mend::Replace(keeper), None),
        Some(_) => (Mend::Nothing, None),
    };
    let note = note.map(|note| of_service(keeper, "ClusterIPNotAllocated", note));
    let others = seen.owners.iter().filter(|owner| *owner != keeper);
    let others = others.map(|owner| {
        let note = format!(
            "Cluster IP [{family}]:{address} was assigned to multiple services; please recreate \
             service"
        );
        of_service(owner, "ClusterIPAlreadyAllocated", note)
    });
    (mend, note.into_iter().chain(others).collect())
}

/// An address that was made here, and that no Service has.
fn orphan<'a>(seen: &Seen<'a>, object: &Object, now: Timestamp) -> (Mend<'a>, Vec<Tell>) {
    let name = object.name();
    let freed = |reason, note| {
        let tell = Tell {
            about: object.clone(),
            reason,
            action: OF_ADDRESSES,
            note,
        };
        (Mend::Delete, vec![tell])
    };
    let Some((namespace, service)) = objects::parent(object) else {
        let note = format!(
            "IPAddress {name} appears to have been modified, not referencing a Service {}: \
             cleaning up",
            Reference(object)
        );
        return freed("IPAddressNotAllocated", note);
    };
    let patience = match seen.parent {
        None => GRACE,
        Some(parent) if Service::of(parent).kind() == "ExternalName" => GRACE,
        Some(parent) if created(object) > created(parent) => GRACE_OF_WRITES,
        Some(_) => Duration::ZERO,
    };
    let left = left(patience, object, now);
    if left > Duration::ZERO {
        return (Mend::LookAgainIn(left), Vec::new());
    }
    match seen.parent {
        None => freed(
            "IPAddressNotAllocated",
            format!(
                "IPAddress: {name} for Service {namespace}/{service} appears to have leaked: \
                 cleaning up"
            ),
        ),
        Some(_) => freed(
            "IPAddressWrongReference",
            format!(
                "IPAddress: {name} for Service {namespace}/{service} has a wrong reference; \
                 cleaning up"
            ),
        ),
    }
}

/// What is left of the time that a young object is given. A clock that was set back gives no more.
fn left(patience: Duration, object: &Object, now: Timestamp) -> Duration {
    let age = created(object).map(|created| now.duration_since(created));
    let age = age.unwrap_or(SignedDuration::MAX);
    let age = Duration::try_from(age).unwrap_or(Duration::ZERO);
    patience.saturating_sub(age)
}

fn created(object: &Object) -> Option<Timestamp> {
    let created = object.str(&["metadata", "creationTimestamp"]);
    created.parse().ok()
}

/// What is wrong with a Service, beside its addresses. `is_others` says of a port that a Service
/// had it before this one.
pub fn service(
    object: &Object,
    ports: &[i64],
    range: (i64, i64),
    is_others: impl Fn(i64) -> bool,
) -> Vec<Tell> {
    let mut told = Vec::new();
    let view = Service::of(object);
    if view.needs_cluster_ip() && !view.is_headless() {
        for value in view.cluster_ips().iter().filter_map(Value::as_str) {
            if value.parse::<IpAddr>().is_err() {
                let note = format!("Cluster IP {value} is not a valid IP; please recreate Service");
                told.push(Tell {
                    action: "ClusterIPValidation",
                    ..of_service(object, "ClusterIPNotValid", note)
                });
            }
        }
    }
    let (first, last) = range;
    for port in ports {
        let (reason, note) = if !(first..=last).contains(port) {
            let note = format!(
                "Port {port} is not within the port range {first}-{last}; please recreate service"
            );
            ("PortOutOfRange", note)
        } else if is_others(*port) {
            let note =
                format!("Port {port} was assigned to multiple services; please recreate service");
            ("PortAlreadyAllocated", note)
        } else {
            continue;
        };
        told.push(Tell {
            action: OF_PORTS,
            ..of_service(object, reason, note)
        });
    }
    told
}

fn of_service(service: &Object, reason: &'static str, note: String) -> Tell {
    Tell {
        about: service.clone(),
        reason,
        action: OF_SERVICES,
        note,
    }
}

fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

/// As Go prints it.
struct Reference<'a>(&'a Object);

impl fmt::Display for Reference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parent = self.0.get(&["spec", "parentRef"]).unwrap_or(&json::NULL);
        let text = |field| json::text(parent, field);
        write!(
            f,
            "&ParentReference{{Group:{},Resource:{},Namespace:{},Name:{},}}",
            text("group"),
            text("resource"),
            text("namespace"),
            text("name")
        )
    }
}

#[cfg(test)]
mod tests;
