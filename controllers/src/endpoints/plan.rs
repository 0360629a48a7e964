//! Decides what the Endpoints of a Service say. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort, EndpointSubset, Endpoints, ObjectReference, Pod,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::COMPONENT;
use crate::pods;
use crate::services::{self, Family, HEADLESS, Service};
use crate::subsets::repack;
use crate::trigger_time::annotate;

/// Upstream's bound: more would make one object of megabytes, sent to every node for each change.
const ADDRESSES_MAX: usize = 1000;
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";

type Labels = BTreeMap<String, String>;

pub(super) fn subsets(service: &Service, pods: &[Arc<Pod>]) -> Vec<EndpointSubset> {
    let with_terminating = service.spec.publish_not_ready_addresses;
    let mut subsets = Vec::new();
    for pod in pods {
        if !services::is_endpoint(pod, with_terminating) {
            continue;
        }
        let Some(address) = address(service, pod) else {
            continue; // It has none of the Service's family.
        };
        let is_ready = with_terminating || pods::is_ready(pod);
        if service.spec.ports.is_empty() && service.is_headless() {
            subsets.push(subset(address.clone(), is_ready, None));
        }
        for port in &service.spec.ports {
            if let Some(number) = services::find_port(pod, port) {
                let port = EndpointPort {
                    name: port.name.clone().filter(|name| !name.is_empty()),
                    port: number,
                    protocol: port.protocol.clone(),
                    app_protocol: port.app_protocol.clone(),
                };
                subsets.push(subset(address.clone(), is_ready, Some(port)));
            }
        }
    }
    repack(&subsets)
}

fn subset(address: EndpointAddress, is_ready: bool, port: Option<EndpointPort>) -> EndpointSubset {
    let (ready, not_ready) = if is_ready {
        (Some(vec![address]), None)
    } else {
        (None, Some(vec![address]))
    };
    EndpointSubset {
        addresses: ready,
        not_ready_addresses: not_ready,
        ports: port.map(|port| vec![port]),
    }
}

fn address(service: &Service, pod: &Pod) -> Option<EndpointAddress> {
    let first = service.spec.ip_families.first().copied();
    let family = first.or(service.family_of_address()).or_else(|| {
        let own = pod.status.as_ref()?.pod_ip.as_deref()?;
        services::parse_address(own).map(Family::of)
    });
    let family = family.unwrap_or(Family::IPv4);
    let found = services::addresses(pod).find(|address| Family::of(*address) == family)?;
    Some(EndpointAddress {
        ip: found.to_string(),
        hostname: service.host_name_of(pod).cloned(),
        node_name: Some(pods::node_name(pod).to_owned()),
        target_ref: Some(ObjectReference {
            kind: Some("Pod".to_owned()),
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectReference::default()
        }),
    })
}

/// The object to write; `None` when what is there says the same.
pub(super) fn next(
    current: Option<&Endpoints>,
    service: &Service,
    mut subsets: Vec<EndpointSubset>,
    changed_at: Option<Timestamp>,
) -> Option<Endpoints> {
    let own = service.metadata.labels.clone().unwrap_or_default();
    let mut meta = match current {
        Some(current) => {
            let found = current.subsets.as_deref().unwrap_or_default();
            let is_same = are_same(found, &subsets) || are_same(&repack(found), &subsets);
            if is_same && has_labels(&current.metadata, &own) && is_capacity_right(current) {
                return None;
            }
            current.metadata.clone()
        }
        None => ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.metadata.namespace.clone(),
            ..ObjectMeta::default()
        },
    };
    meta.managed_fields = None; // The server knows who owns which field.
    meta.labels = Some(labels(service, own));
    annotate(&mut meta, changed_at);
    let annotations = meta.annotations.get_or_insert_default();
    if truncate(&mut subsets) {
        annotations.insert(OVER_CAPACITY.to_owned(), "truncated".to_owned());
    } else {
        annotations.remove(OVER_CAPACITY);
    }
    meta.annotations = meta.annotations.filter(|all| !all.is_empty());
    Some(Endpoints {
        metadata: meta,
        subsets: (!subsets.is_empty()).then_some(subsets),
    })
}

fn labels(service: &Service, mut labels: Labels) -> Labels {
    if service.has_address() {
        labels.remove(HEADLESS);
    } else {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(MANAGED_BY.to_owned(), COMPONENT.to_owned());
    labels
}

/// Whether the labels are those of the Service, by upstream's reckoning: the headless one does not
/// count, and follows with the next write.
fn has_labels(meta: &ObjectMeta, service: &Labels) -> bool {
    let Some(labels) = &meta.labels else {
        return false;
    };
    let own = labels
        .iter()
        .filter(|(name, _)| ![HEADLESS, MANAGED_BY].contains(&name.as_str()));
    labels.get(MANAGED_BY).map(String::as_str) == Some(COMPONENT)
        && own.clone().count() == service.len()
        && own
            .clone()
            .all(|(name, value)| service.get(name) == Some(value))
}

/// Not more addresses than may be, and nothing that says there were.
fn is_capacity_right(current: &Endpoints) -> bool {
    let subsets = current.subsets.as_deref().unwrap_or_default();
    let annotations = current.metadata.annotations.as_ref();
    let is_marked = annotations.is_some_and(|all| all.contains_key(OVER_CAPACITY));
    count(subsets, ready) + count(subsets, not_ready) <= ADDRESSES_MAX && !is_marked
}

fn ready(subset: &EndpointSubset) -> &[EndpointAddress] {
    subset.addresses.as_deref().unwrap_or_default()
}

fn not_ready(subset: &EndpointSubset) -> &[EndpointAddress] {
    subset.not_ready_addresses.as_deref().unwrap_or_default()
}

fn count(subsets: &[EndpointSubset], which: fn(&EndpointSubset) -> &[EndpointAddress]) -> usize {
    subsets.iter().map(|subset| which(subset).len()).sum()
}

/// Leaves the most that may be, ready ones first, each subset its part. True if some had to go.
fn truncate(subsets: &mut [EndpointSubset]) -> bool {
    let (total_ready, total_not_ready) = (count(subsets, ready), count(subsets, not_ready));
    if total_ready + total_not_ready <= ADDRESSES_MAX {
        return false;
    }
    let cuts_ready = total_ready > ADDRESSES_MAX;
    let (room, total) = if cuts_ready {
        (ADDRESSES_MAX, total_ready)
    } else {
        (ADDRESSES_MAX - total_ready, total_not_ready)
    };
    let mut left = room;
    for subset in subsets {
        let addresses = if cuts_ready {
            subset.not_ready_addresses = None;
            &mut subset.addresses
        } else {
            &mut subset.not_ready_addresses
        };
        let Some(addresses) = addresses else { continue };
        let part = (addresses.len() * room).div_ceil(total).min(left);
        addresses.truncate(part);
        left -= addresses.len();
    }
    true
}

/// Whether two lists of subsets say the same; of what revision a target is does not count.
fn are_same(some: &[EndpointSubset], others: &[EndpointSubset]) -> bool {
    let is_same = |(one, other): (&EndpointSubset, &EndpointSubset)| {
        let ports = |subset: &EndpointSubset| subset.ports.clone().unwrap_or_default();
        are_same_addresses(ready(one), ready(other))
            && are_same_addresses(not_ready(one), not_ready(other))
            && ports(one) == ports(other)
    };
    some.len() == others.len() && some.iter().zip(others).all(is_same)
}

fn are_same_addresses(some: &[EndpointAddress], others: &[EndpointAddress]) -> bool {
    let stripped = |address: &EndpointAddress| {
        let mut address = address.clone();
        if let Some(target) = &mut address.target_ref {
            target.resource_version = None;
        }
        address
    };
    let some = some.iter().map(stripped);
    some.eq(others.iter().map(stripped))
}

#[cfg(test)]
mod tests;
