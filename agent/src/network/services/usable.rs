//! Which endpoints of a Service's port this node sends to. Pure; the rules are upstream's
//! (kube-proxy's topology).

use super::node::Node;
use super::steps::{Family, Target};
use crate::network::view::{Endpoint, Entry, ServicePort};
use std::collections::BTreeMap;

/// Every endpoint of a port, once a target.
pub type Candidates<'a> = BTreeMap<Target, &'a Endpoint>;

/// Which kinds of traffic policy the port has on some way to it.
#[derive(Clone, Copy, Debug)]
pub struct Policies {
    pub cluster: bool,
    pub local: bool,
}

#[derive(Debug, Default, Eq, PartialEq)]
pub struct Usable {
    /// For ways under the policy `Cluster`; empty when there are none. In order.
    pub cluster: Vec<Target>,
    /// For ways under the policy `Local`. In order.
    pub local: Vec<Target>,
    /// Whether any endpoint of the cluster can be used, be it not from here.
    pub has_any: bool,
}

/// An endpoint that moves between slices, or an address that moves between pods, may be there
/// twice: one that is not terminating counts.
pub fn candidates<'a>(entry: &'a Entry, family: Family, port: &ServicePort) -> Candidates<'a> {
    let mut found = Candidates::new();
    for slice in &entry.slices {
        if slice.is_v6 != (family == Family::Ip6) || slice.is_routed_by_others {
            continue;
        }
        let same = slice
            .ports
            .iter()
            .filter(|of| of.name == port.name && of.protocol == port.protocol);
        for number in same.filter_map(|of| of.port.filter(|number| *number != 0)) {
            for endpoint in &slice.endpoints {
                let target = Target {
                    address: endpoint.address(),
                    port: number,
                };
                // A slice whose addresses are not of its family is not to be trusted.
                let is_known = found.contains_key(&target) && endpoint.is_terminating;
                if Family::of(target.address) == family && !is_known {
                    found.insert(target, endpoint);
                }
            }
        }
    }
    found
}

pub fn usable(candidates: &Candidates<'_>, policies: Policies, node: &Node) -> Usable {
    let mut usable = Usable::default();
    if policies.cluster {
        usable.cluster = of_cluster(candidates, node);
        usable.has_any = !usable.cluster.is_empty();
    }
    if policies.local {
        usable.local = of_node(candidates, node);
        usable.has_any |= candidates
            .values()
            .any(|endpoint| endpoint.is_ready || is_last_resort(endpoint));
    }
    usable
}

fn of_cluster(candidates: &Candidates<'_>, node: &Node) -> Vec<Target> {
    let near = Nearness::by_hints(candidates, node);
    let ready = select(candidates, |endpoint| {
        endpoint.is_ready && near.has(endpoint, node)
    });
    if ready.is_empty() {
        return select(candidates, is_last_resort);
    }
    ready
}

fn of_node(candidates: &Candidates<'_>, node: &Node) -> Vec<Target> {
    let ready = select(candidates, |endpoint| {
        node.has(endpoint) && endpoint.is_ready
    });
    if ready.is_empty() {
        return select(candidates, |endpoint| {
            node.has(endpoint) && is_last_resort(endpoint)
        });
    }
    ready
}

/// It ends, but still answers: used when none is ready.
fn is_last_resort(endpoint: &Endpoint) -> bool {
    endpoint.is_serving && endpoint.is_terminating
}

fn select(candidates: &Candidates<'_>, is_it: impl Fn(&Endpoint) -> bool) -> Vec<Target> {
    let of = candidates.iter().filter(|(_, endpoint)| is_it(endpoint));
    of.map(|(target, _)| *target).collect()
}

/// What hints allow. They count only when every ready endpoint has them and one is meant for here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Nearness {
    Anywhere,
    Node,
    Zone,
}

impl Nearness {
    fn by_hints(candidates: &Candidates<'_>, node: &Node) -> Self {
        let ready = || candidates.values().filter(|endpoint| endpoint.is_ready);
        if ready().next().is_none() {
            return Self::Anywhere;
        }
        for (nearness, are_hinted) in [
            (Self::Node, ready().all(|of| !of.hint_nodes.is_empty())),
            (Self::Zone, ready().all(|of| !of.hint_zones.is_empty())),
        ] {
            if are_hinted && ready().any(|endpoint| nearness.has(endpoint, node)) {
                return nearness;
            }
        }
        Self::Anywhere
    }

    fn has(self, endpoint: &Endpoint, node: &Node) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Node => endpoint.hint_nodes.contains(&node.name),
            Self::Zone => node
                .zone
                .as_ref()
                .is_some_and(|zone| endpoint.hint_zones.contains(zone)),
        }
    }
}

#[cfg(test)]
mod tests;
