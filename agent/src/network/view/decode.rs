//! From the server's objects to records. Pure. What is malformed is left out, never guessed.

use super::{
    Distribution, Endpoint, Key, Protocol, Service, ServiceKind, ServicePort, Slice, SlicePort, key,
};
use crate::network::subnet::Subnet;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::discovery::v1 as discovery;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const ROUTED_BY_OTHERS: [&str; 2] = [
    "service.kubernetes.io/service-proxy-name",
    "service.kubernetes.io/headless",
];
/// Of the Service of the cluster's DNS.
const CLUSTER_DOMAIN: &str = "dns.coracle/cluster-domain";
const DEFAULT_AFFINITY_SECONDS: u32 = 3 * 60 * 60;

pub fn object_key(meta: &ObjectMeta) -> Key {
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    key(namespace, meta.name.as_deref().unwrap_or_default())
}

pub fn service(object: &core::Service) -> Service {
    let nothing = core::ServiceSpec::default();
    let spec = object.spec.as_ref().unwrap_or(&nothing);
    let kind = kind(spec);
    let is_external = matches!(kind, ServiceKind::NodePort | ServiceKind::LoadBalancer)
        || spec.external_ips.iter().flatten().next().is_some();
    let uid = object.metadata.uid.as_deref().unwrap_or_default();
    Service {
        uid: uid.parse().unwrap_or_default(),
        kind,
        cluster_ips: cluster_ips(spec, kind),
        is_headless: kind != ServiceKind::ExternalName
            && spec.cluster_ip.as_deref() == Some("None"),
        ports: spec
            .ports
            .iter()
            .flatten()
            .filter_map(service_port)
            .collect(),
        external_ips: addresses(spec.external_ips.iter().flatten()),
        load_balancer_ips: load_balancer_ips(object),
        source_ranges: source_ranges(spec),
        is_external_local: is_external && spec.external_traffic_policy.as_deref() == Some("Local"),
        is_internal_local: spec.internal_traffic_policy.as_deref() == Some("Local"),
        health_check_node_port: spec.health_check_node_port.and_then(port).unwrap_or(0),
        affinity_seconds: affinity(spec),
        distribution: distribution(spec),
        external_name: given(spec.external_name.as_deref())
            .filter(|_| kind == ServiceKind::ExternalName),
        is_routed_by_others: is_routed_by_others(&object.metadata),
        cluster_domain: cluster_domain(&object.metadata),
    }
}

fn cluster_domain(meta: &ObjectMeta) -> Option<Box<str>> {
    let annotations = meta.annotations.as_ref()?;
    given(annotations.get(CLUSTER_DOMAIN).map(String::as_str))
}

fn kind(spec: &core::ServiceSpec) -> ServiceKind {
    match spec.type_.as_deref() {
        Some("NodePort") => ServiceKind::NodePort,
        Some("LoadBalancer") => ServiceKind::LoadBalancer,
        Some("ExternalName") => ServiceKind::ExternalName,
        _ => ServiceKind::ClusterIp,
    }
}

fn cluster_ips(spec: &core::ServiceSpec, kind: ServiceKind) -> Box<[IpAddr]> {
    if kind == ServiceKind::ExternalName {
        return Box::default();
    }
    let all = addresses(spec.cluster_ips.iter().flatten());
    if all.is_empty() {
        // An old server knows the singular alone.
        return addresses(spec.cluster_ip.iter());
    }
    all
}

fn service_port(object: &core::ServicePort) -> Option<ServicePort> {
    Some(ServicePort {
        name: object.name.as_deref().unwrap_or_default().into(),
        protocol: protocol(object.protocol.as_deref())?,
        port: port(object.port)?,
        node_port: object.node_port.and_then(port).unwrap_or(0),
    })
}

fn load_balancer_ips(object: &core::Service) -> Box<[IpAddr]> {
    let status = object
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());
    let ingress = status.and_then(|status| status.ingress.as_ref());
    let accepted = ingress.into_iter().flatten().filter(|ingress| {
        // None is `VIP`, as upstream defaults it.
        ingress.ip_mode.as_deref() != Some("Proxy")
    });
    addresses(accepted.filter_map(|ingress| ingress.ip.as_ref()))
}

/// The server lets blanks around a range pass. A range of everything bounds nothing; upstream
/// looks at each family for itself.
fn source_ranges(spec: &core::ServiceSpec) -> Box<[Subnet]> {
    let ranges = spec.load_balancer_source_ranges.iter().flatten();
    ranges
        .filter_map(|range| Subnet::parse(range.trim()))
        .collect()
}

fn affinity(spec: &core::ServiceSpec) -> Option<u32> {
    if spec.session_affinity.as_deref() != Some("ClientIP") {
        return None;
    }
    let config = spec.session_affinity_config.as_ref();
    let seconds = config.and_then(|config| config.client_ip.as_ref()?.timeout_seconds);
    Some(
        seconds
            .and_then(|seconds| seconds.try_into().ok())
            .unwrap_or(DEFAULT_AFFINITY_SECONDS),
    )
}

fn distribution(spec: &core::ServiceSpec) -> Distribution {
    match spec.traffic_distribution.as_deref() {
        Some("PreferClose" | "PreferSameZone") => Distribution::PreferSameZone,
        Some("PreferSameNode") => Distribution::PreferSameNode,
        _ => Distribution::Everywhere,
    }
}

/// With the key of its Service. None for one that has none, and for one of names.
pub fn slice(object: &discovery::EndpointSlice) -> Option<(Key, Slice)> {
    let meta = &object.metadata;
    let is_v6 = match object.address_type.as_str() {
        "IPv4" => false,
        "IPv6" => true,
        _ => return None,
    };
    let labels = meta.labels.as_ref()?;
    let service = labels.get(SERVICE_NAME).filter(|name| !name.is_empty())?;
    let mut words = Words::default();
    let endpoints = object.endpoints.iter().flatten();
    let endpoints = endpoints.filter_map(|endpoint| self::endpoint(endpoint, is_v6, &mut words));
    let slice = Slice {
        name: meta.name.as_deref().unwrap_or_default().into(),
        is_v6,
        endpoints: endpoints.collect(),
        ports: object
            .ports
            .iter()
            .flatten()
            .filter_map(slice_port)
            .collect(),
        is_routed_by_others: is_routed_by_others(meta),
    };
    Some((
        key(meta.namespace.as_deref().unwrap_or_default(), service),
        slice,
    ))
}

fn slice_port(object: &discovery::EndpointPort) -> Option<SlicePort> {
    Some(SlicePort {
        name: object.name.as_deref().unwrap_or_default().into(),
        protocol: protocol(object.protocol.as_deref())?,
        port: match object.port {
            Some(number) => Some(port(number)?),
            None => None,
        },
    })
}

fn endpoint(object: &discovery::Endpoint, is_v6: bool, words: &mut Words) -> Option<Endpoint> {
    let addresses = addresses(object.addresses.iter());
    let addresses: Box<[_]> = addresses
        .into_iter()
        .filter(|address| address.is_ipv6() == is_v6)
        .collect();
    if addresses.is_empty() {
        return None;
    }
    let conditions = object.conditions.as_ref();
    let hints = object.hints.as_ref();
    let zones = hints
        .and_then(|hints| hints.for_zones.as_ref())
        .into_iter()
        .flatten();
    let nodes = hints
        .and_then(|hints| hints.for_nodes.as_ref())
        .into_iter()
        .flatten();
    Some(Endpoint {
        addresses,
        is_ready: conditions.and_then(|known| known.ready).unwrap_or(true),
        is_serving: conditions.and_then(|known| known.serving).unwrap_or(true),
        is_terminating: conditions
            .and_then(|known| known.terminating)
            .unwrap_or(false),
        hostname: given(object.hostname.as_deref()),
        node: object.node_name.as_deref().map(|name| words.get(name)),
        zone: object.zone.as_deref().map(|name| words.get(name)),
        hint_zones: zones.map(|zone| words.get(&zone.name)).collect(),
        hint_nodes: nodes.map(|node| words.get(&node.name)).collect(),
    })
}

/// Names of nodes and zones, which are the same many times in a slice.
#[derive(Default)]
struct Words(BTreeSet<Arc<str>>);

impl Words {
    fn get(&mut self, word: &str) -> Arc<str> {
        if let Some(known) = self.0.get(word) {
            return known.clone();
        }
        let new = Arc::<str>::from(word);
        self.0.insert(new.clone());
        new
    }
}

fn addresses<'a>(texts: impl Iterator<Item = &'a String>) -> Box<[IpAddr]> {
    texts.filter_map(|text| text.parse().ok()).collect()
}

fn port(number: i32) -> Option<u16> {
    u16::try_from(number).ok().filter(|number| *number > 0)
}

fn protocol(name: Option<&str>) -> Option<Protocol> {
    Protocol::named(name.unwrap_or("TCP"))
}

fn given(text: Option<&str>) -> Option<Box<str>> {
    text.filter(|text| !text.is_empty()).map(Into::into)
}

fn is_routed_by_others(meta: &ObjectMeta) -> bool {
    let labels = meta.labels.as_ref();
    labels.is_some_and(|labels| {
        ROUTED_BY_OTHERS
            .iter()
            .any(|name| labels.contains_key(*name))
    })
}

#[cfg(test)]
mod tests;
