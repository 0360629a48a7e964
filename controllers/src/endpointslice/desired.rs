//! What the pods of a Service are as endpoints, by the ports that they have in common. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort};

use crate::endpoint_slices::{EndpointKey, sorted};
use crate::pods;
use crate::services::{self, Family, Service};
use crate::wire_order::Order;

pub(super) const ZONE: &str = "topology.kubernetes.io/zone";

#[derive(Debug, Default)]
pub(super) struct Desired {
    pub(super) by_ports: BTreeMap<Vec<Order>, Group>,
    pub(super) missing_nodes: Vec<MissingNode>,
}

/// Endpoints with the same ports.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) ports: Vec<EndpointPort>,
    pub(super) endpoints: BTreeMap<EndpointKey, Endpoint>,
}

/// A pod that is left out, because nobody knows where it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MissingNode {
    pub(super) pod: String,
    pub(super) node: String,
}

/// The families that a Service has endpoints of.
pub(super) fn families(service: &Service) -> Vec<Family> {
    let mut families = service.spec.ip_families.clone();
    if families.is_empty() {
        // A server that knows nothing of families made it.
        families = match service.family_of_address() {
            Some(family) => vec![family],
            None => vec![Family::IPv4, Family::IPv6],
        };
    }
    families.sort();
    families.dedup();
    families
}

pub(super) fn group(
    service: &Service,
    pods: &[Arc<Pod>],
    node: &dyn Fn(&str) -> Option<Arc<Node>>,
    family: Family,
) -> Desired {
    let mut desired = Desired::default();
    for pod in pods.iter().filter(|pod| services::is_endpoint(pod, true)) {
        let ports = ports(service, pod);
        let key = ports.iter().map(Order::of_slice_port).collect();
        let group = desired.by_ports.entry(key).or_insert_with(|| Group {
            ports,
            endpoints: BTreeMap::new(),
        });
        let name = pods::node_name(pod);
        let node = node(name);
        if node.is_none() && !service.spec.publish_not_ready_addresses {
            desired.missing_nodes.push(MissingNode {
                pod: pod.metadata.name.clone().unwrap_or_default(),
                node: name.to_owned(),
            });
            continue;
        }
        let endpoint = endpoint(service, pod, node.as_deref(), family);
        if !endpoint.addresses.is_empty() {
            let key = EndpointKey::of(&endpoint);
            group.endpoints.insert(key, endpoint);
        }
    }
    desired
}

fn ports(service: &Service, pod: &Pod) -> Vec<EndpointPort> {
    let ports = service.spec.ports.iter().filter_map(|port| {
        Some(EndpointPort {
            name: Some(port.name.clone().unwrap_or_default()),
            port: Some(services::find_port(pod, port)?),
            protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".to_owned())),
            app_protocol: port.app_protocol.clone(),
        })
    });
    sorted(ports.collect())
}

fn endpoint(service: &Service, pod: &Pod, node: Option<&Node>, family: Family) -> Endpoint {
    let (serving, terminating) = (pods::is_ready(pod), pods::is_deleting(pod));
    let ready = service.spec.publish_not_ready_addresses || (serving && !terminating);
    let addresses = services::addresses(pod).filter(|address| Family::of(*address) == family);
    let node_name = pods::node_name(pod);
    let labels = node.and_then(|node| node.metadata.labels.as_ref());
    let zone = labels.and_then(|labels| labels.get(ZONE));
    Endpoint {
        addresses: addresses.map(|address| address.to_string()).collect(),
        conditions: Some(EndpointConditions {
            ready: Some(ready),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname: service.host_name_of(pod).cloned(),
        node_name: (!node_name.is_empty()).then(|| node_name.to_owned()),
        target_ref: Some(ObjectReference {
            kind: Some("Pod".to_owned()),
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectReference::default()
        }),
        zone: zone.filter(|zone| !zone.is_empty()).cloned(),
        ..Endpoint::default()
    }
}
