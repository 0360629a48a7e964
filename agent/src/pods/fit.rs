//! Whether a pod fits the node beside those that are there. Pure; checks, their order and their
//! words are upstream's.
//!
//! The scheduler has asked the same before; this is for pods that were bound past it, for two that
//! were bound at the same time, and for a node that has changed since.

use super::asked;
use super::manifest::is_static;
use super::state::{init_containers, is_sidecar, spec};
use crate::node::allocatable::{CPU, MEMORY, PODS, STORAGE};
use coracle_api::amounts::Amounts;
use coracle_api::pod_spec::resources::is_extended;
use coracle_api::quantity::Quantity;
use coracle_client::node_selector::term_matches;
use coracle_client::toleration::tolerates;
use k8s_openapi::api::core::v1::{Node, Pod};
use std::collections::BTreeSet;

/// Why it does not.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reason {
    Short(Short),
    Predicate {
        name: &'static str,
        text: &'static str,
    },
}

/// Processor in thousandths, all else in its own unit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Short {
    pub resource: String,
    pub requested: i64,
    pub used: i64,
    pub capacity: i64,
}

pub const NODE_AFFINITY: Reason = Reason::Predicate {
    name: "NodeAffinity",
    text: "node(s) didn't match Pod's node affinity/selector",
};
const NODE_PORTS: Reason = Reason::Predicate {
    name: "NodePorts",
    text: "node(s) didn't have free ports for the requested pod ports",
};
const TAINT_TOLERATION: Reason = Reason::Predicate {
    name: "TaintToleration",
    text: "node(s) had taints that the pod didn't tolerate",
};

impl Short {
    pub fn missing(&self) -> i64 {
        self.requested - (self.capacity - self.used)
    }
}

impl Reason {
    /// Of the pod's status.
    pub fn reason(&self) -> String {
        match self {
            Self::Short(short) => format!("OutOf{}", short.resource),
            Self::Predicate { name, .. } => (*name).to_owned(),
        }
    }

    pub fn message(&self) -> String {
        match self {
            Self::Short(short) => format!(
                "Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}",
                short.resource, short.requested, short.used, short.capacity
            ),
            Self::Predicate { name, text } => format!("Predicate {name} failed: {text}"),
        }
    }
}

/// What of a pod counts for others.
#[derive(Clone, Debug, Default)]
pub struct Share {
    requests: Amounts,
    ports: Vec<HostPort>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct HostPort {
    address: String,
    protocol: String,
    port: i32,
}

impl HostPort {
    fn conflicts(&self, other: &Self) -> bool {
        const ALL: &str = "0.0.0.0";
        self.port == other.port
            && self.protocol == other.protocol
            && (self.address == ALL || other.address == ALL || self.address == other.address)
    }
}

impl Share {
    /// With what the pod holds of the node.
    pub fn of(pod: &Pod, requests: Amounts) -> Self {
        let spec = spec(pod);
        let sidecars = init_containers(spec).iter().filter(|one| is_sidecar(one));
        let ports = spec.containers.iter().chain(sidecars);
        let ports = ports.flat_map(|container| container.ports.iter().flatten());
        let taken = ports.filter_map(|port| {
            let or = |text: &Option<String>, default: &str| {
                let given = text.as_deref().filter(|text| !text.is_empty());
                given.unwrap_or(default).to_owned()
            };
            Some(HostPort {
                address: or(&port.host_ip, "0.0.0.0"),
                protocol: or(&port.protocol, "TCP"),
                port: port.host_port.filter(|port| *port > 0)?,
            })
        });
        Self {
            requests,
            ports: taken.collect(),
        }
    }
}

/// As upstream counts a resource.
pub fn count(requests: &Amounts, name: &str) -> i64 {
    let amount = requests.get(name).unwrap_or(Quantity::ZERO);
    match name {
        PODS => 1,
        CPU => amount.milli_value(),
        _ => amount.value(),
    }
}

/// All reasons, the first of which is told. `node` is what the server says of this node.
pub fn reasons(pod: &Pod, others: &[Share], allocatable: &Amounts, node: &Node) -> Vec<Reason> {
    let own = Share::of(pod, asked::requests(pod));
    let mut found: Vec<_> = short(&own, others, allocatable)
        .into_iter()
        .map(Reason::Short)
        .collect();
    if !matches_node(pod, node) {
        found.push(NODE_AFFINITY);
    }
    let taken = || others.iter().flat_map(|other| &other.ports);
    if own
        .ports
        .iter()
        .any(|port| taken().any(|other| port.conflicts(other)))
    {
        found.push(NODE_PORTS);
    }
    if is_repelled(pod, node) {
        found.push(TAINT_TOLERATION);
    }
    found
}

fn short(own: &Share, others: &[Share], allocatable: &Amounts) -> Vec<Short> {
    let mut found = Vec::new();
    let capacity = |name: &str| match name {
        PODS => allocatable.get(PODS).unwrap_or(Quantity::ZERO).value(),
        _ => count(allocatable, name),
    };
    let used = |name: &str| -> i64 {
        let all = others.iter().map(|other| count(&other.requests, name));
        all.fold(0, i64::saturating_add)
    };
    let own_kinds = [CPU, MEMORY, STORAGE];
    let more: BTreeSet<&str> = own
        .requests
        .names()
        .filter(|name| !own_kinds.contains(name))
        // What the node knows nothing of is not the node's to refuse.
        .filter(|name| !is_extended(name) || allocatable.has(name))
        .collect();
    for name in [PODS].into_iter().chain(own_kinds).chain(more) {
        let short = Short {
            resource: name.to_owned(),
            requested: count(&own.requests, name),
            used: used(name),
            capacity: capacity(name),
        };
        if short.requested > 0 && short.missing() > 0 {
            found.push(short);
        }
    }
    found
}

fn matches_node(pod: &Pod, node: &Node) -> bool {
    let spec = spec(pod);
    let labels = node.metadata.labels.as_ref();
    let label = |key: &str| labels?.get(key).map(String::as_str);
    let mut selector = spec.node_selector.iter().flatten();
    if !selector.all(|(key, value)| label(key) == Some(value)) {
        return false;
    }
    let affinity = spec.affinity.as_ref();
    let affinity = affinity.and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|own| {
        own.required_during_scheduling_ignored_during_execution
            .as_ref()
    });
    let name = node.metadata.name.as_deref().unwrap_or_default();
    required.is_none_or(|required| {
        let mut terms = required.node_selector_terms.iter();
        terms.any(|term| term_matches(term, label, name))
    })
}

/// By a taint that pods do not stay with. Static pods bear all of them.
fn is_repelled(pod: &Pod, node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let tolerations = spec(pod).tolerations.as_deref().unwrap_or_default();
    let mut no_execute = taints
        .into_iter()
        .flatten()
        .filter(|taint| taint.effect == "NoExecute");
    !is_static(pod) && no_execute.any(|taint| !tolerations.iter().any(|one| tolerates(one, taint)))
}

#[cfg(test)]
mod tests;
