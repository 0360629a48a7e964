//! From what the server tells to records. Pure. A part of a rule that is not understood (a peer, a
//! port, an operator) lets nothing pass. A specification that cannot be read at all is none.

use super::labels::{Is, Labels, Requirement, Selector};
use super::record::{
    NamedPort, Namespaces, Number, Peers, Pod, PodPeer, Policy, Port, Rule, blocks,
};
use crate::network::nft::Range;
use crate::network::subnet::Subnet;
use crate::network::view::Protocol;
use coracle_api::policy_feed as told;
use k8s_openapi::api::networking::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// None for what is no specification.
pub fn policy(namespace: &str, spec: serde_json::Value) -> Option<Policy> {
    let spec: api::NetworkPolicySpec = serde_json::from_value(spec).ok()?;
    let types = spec.policy_types.as_deref().unwrap_or_default();
    let is_of = |name: &str| types.iter().any(|one| one == name);
    let ingress = spec.ingress.into_iter().flatten();
    let ingress = ingress.map(|rule| self::rule(namespace, rule.from, rule.ports));
    let ingress: Box<[Rule]> = ingress.collect();
    let egress = spec.egress.into_iter().flatten();
    let egress = egress.map(|rule| self::rule(namespace, rule.to, rule.ports));
    let egress: Box<[Rule]> = egress.collect();
    // As the server defaults them.
    let (is_ingress, is_egress) = match types {
        [] => (true, !egress.is_empty()),
        _ => (is_of("Ingress"), is_of("Egress")),
    };
    Some(Policy {
        pods: spec.pod_selector.map_or_else(Selector::default, selector),
        ingress: is_ingress.then_some(ingress),
        egress: is_egress.then_some(egress),
    })
}

fn rule(
    namespace: &str,
    peers: Option<Vec<api::NetworkPolicyPeer>>,
    ports: Option<Vec<api::NetworkPolicyPort>>,
) -> Rule {
    let peers = peers.unwrap_or_default();
    let ports = ports.unwrap_or_default();
    Rule {
        peers: match &*peers {
            [] => Peers::Everyone,
            _ => self::peers(namespace, peers),
        },
        ports: match &*ports {
            [] => None,
            _ => Some(ports.into_iter().filter_map(port).collect()),
        },
    }
}

fn peers(namespace: &str, peers: Vec<api::NetworkPolicyPeer>) -> Peers {
    let mut pods = Vec::new();
    let mut networks = Vec::new();
    for peer in peers {
        if let Some(block) = peer.ip_block {
            networks.extend(network(&block));
            continue;
        }
        if peer.pod_selector.is_none() && peer.namespace_selector.is_none() {
            continue;
        }
        pods.push(PodPeer {
            namespaces: match peer.namespace_selector {
                Some(of) => Namespaces::Selected(selector(of)),
                None => Namespaces::One(namespace.into()),
            },
            pods: peer.pod_selector.map_or_else(Selector::default, selector),
        });
    }
    pods.sort();
    pods.dedup();
    Peers::Some {
        pods: pods.into(),
        blocks: blocks(networks),
    }
}

/// An exception that is none makes the whole block none.
fn network(block: &api::IPBlock) -> Option<(Range, Vec<Range>)> {
    let except = block.except.iter().flatten();
    let except: Option<Vec<Range>> = except.map(|cidr| range(cidr)).collect();
    Some((range(&block.cidr)?, except?))
}

fn range(cidr: &str) -> Option<Range> {
    Subnet::parse(cidr).map(Range::from)
}

fn port(port: api::NetworkPolicyPort) -> Option<Port> {
    let number = match port.port {
        None => Number::Any,
        Some(IntOrString::String(name)) => Number::Named(name.into()),
        Some(IntOrString::Int(first)) => {
            let first = u16::try_from(first).ok()?;
            let last = match port.end_port {
                Some(last) => u16::try_from(last).ok()?,
                None => first,
            };
            Number::Between(first, last)
        }
    };
    Some(Port {
        protocol: Protocol::named(port.protocol.as_deref().unwrap_or("TCP"))?,
        number,
    })
}

fn selector(selector: LabelSelector) -> Selector {
    let labels = selector.match_labels.into_iter().flatten();
    let labels = labels.map(|(key, value)| Requirement {
        key: key.into(),
        is: Is::OneOf([value.into()].into()),
    });
    let expressions = selector.match_expressions.into_iter().flatten();
    Selector::new(labels.chain(expressions.map(requirement)))
}

fn requirement(requirement: LabelSelectorRequirement) -> Requirement {
    let values = requirement.values.into_iter().flatten();
    let mut values: Vec<Box<str>> = values.map(Box::from).collect();
    values.sort();
    values.dedup();
    Requirement {
        key: requirement.key.into(),
        is: match requirement.operator.as_str() {
            "In" => Is::OneOf(values.into()),
            "NotIn" => Is::NoneOf(values.into()),
            "Exists" => Is::There,
            "DoesNotExist" => Is::Missing,
            _ => Is::Unknown,
        },
    }
}

pub fn pod(pod: &told::Pod) -> Pod {
    Pod {
        uid: pod.uid.parse().unwrap_or_default(),
        labels: Labels::from(&pod.labels),
        addresses: pod.addresses.clone().into(),
        ports: named_ports(&pod.ports),
    }
}

pub fn named_ports(ports: &[told::NamedPort]) -> Box<[NamedPort]> {
    let ports = ports.iter().filter_map(|port| {
        Some(NamedPort {
            name: port.name.as_str().into(),
            protocol: Protocol::named(&port.protocol)?,
            port: port.port,
        })
    });
    ports.collect()
}

#[cfg(test)]
mod tests;
