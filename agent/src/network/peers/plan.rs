//! By which way each other node's pods are reached. Pure.

use super::record::Peer;
use crate::network::subnet::Subnet;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

/// A hardware address that is locally administered, and not one of pods (0a:58).
const TUNNEL_PREFIX: [u8; 2] = [0x0a, 0x59];

#[derive(Clone, Debug)]
pub struct Own {
    pub name: String,
    pub network: Subnet,
    pub address: IpAddr,
    pub segments: Vec<Segment>,
}

/// A network that a link of this node is on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Segment {
    pub subnet: Subnet,
    pub link: u32,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Plan {
    /// No two overlap, and none overlaps what is this node's own.
    pub routes: Vec<Route>,
    pub problems: BTreeSet<Problem>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Route {
    pub network: Subnet,
    pub way: Way,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// To a node on a segment of ours.
    Straight {
        gateway: IpAddr,
        link: u32,
    },
    Tunnel(FarEnd),
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct FarEnd {
    pub hardware: [u8; 6],
    pub address: IpAddr,
}

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Problem {
    /// It is no network.
    NoNetwork { node: String, network: String },
    /// It overlaps a network of this node, or one that another node had before.
    Overlap {
        node: String,
        network: Subnet,
        other: Subnet,
        /// None for a network of this node.
        of: Option<String>,
    },
    /// Nodes would not be reached any more.
    HidesNode {
        node: String,
        network: Subnet,
        address: IpAddr,
    },
    /// No address of the node that this one could send to.
    NoAddress { node: String, network: Subnet },
    /// The pods' network of this node lies over one that it is on.
    OwnOverlap { network: Subnet, segment: Subnet },
    /// Someone else made one.
    RouteTaken { network: Subnet },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNetwork { node, network } => {
                write!(
                    f,
                    "No route to the pods of node {node}: its podCIDR {network:?} is no network"
                )
            }
            Self::Overlap {
                node,
                network,
                other,
                of,
            } => {
                let of = of.as_ref().map(|of| format!("of node {of}"));
                let of = of.unwrap_or_else(|| "of this node".to_owned());
                write!(
                    f,
                    "No route to the pods of node {node}: its podCIDR {network} overlaps {other} {of}"
                )
            }
            Self::HidesNode {
                node,
                network,
                address,
            } => write!(
                f,
                "No route to the pods of node {node}: \
                 its podCIDR {network} has the address {address} of a node in it"
            ),
            Self::NoAddress { node, network } => write!(
                f,
                "No route to the pods of node {node} in {network}: \
                 it has no InternalIP that this node could send to"
            ),
            Self::OwnOverlap { network, segment } => write!(
                f,
                "The podCIDR {network} of this node overlaps the network {segment} that it is on"
            ),
            Self::RouteTaken { network } => write!(
                f,
                "No route to the podCIDR {network}: there is one already that is not Coracle's"
            ),
        }
    }
}

pub fn plan(own: &Own, nodes: &BTreeMap<Box<str>, Peer>) -> Plan {
    let mut plan = Plan::default();
    for segment in &own.segments {
        if hides(own.network, segment.subnet) {
            plan.problems.insert(Problem::OwnOverlap {
                network: own.network,
                segment: segment.subnet,
            });
        }
    }
    let mut peers: Vec<_> = nodes
        .values()
        .filter(|peer| *peer.name != *own.name)
        .collect();
    peers.sort_by_key(|peer| (peer.created, &peer.name));
    let mut taken: Vec<(Subnet, &str)> = Vec::new();
    for peer in peers {
        if peer.addresses.is_empty() {
            continue; // It has just come, and will say.
        }
        for text in &peer.networks {
            let Some(network) = Subnet::parse(text) else {
                plan.problems.insert(Problem::NoNetwork {
                    node: peer.name.to_string(),
                    network: text.to_string(),
                });
                continue;
            };
            let hidden = nodes
                .values()
                .flat_map(|node| &node.addresses)
                .chain([&own.address]);
            let hidden = hidden.copied().find(|address| network.contains(*address));
            if let Some(address) = hidden {
                plan.problems.insert(Problem::HidesNode {
                    node: peer.name.to_string(),
                    network,
                    address,
                });
                continue;
            }
            match way(own, peer, network, &taken) {
                Ok(way) => {
                    taken.push((network, &peer.name));
                    plan.routes.push(Route { network, way });
                }
                Err(problem) => {
                    plan.problems.insert(problem);
                }
            }
        }
    }
    plan.routes.sort_by_key(|route| route.network);
    plan
}

fn way(own: &Own, peer: &Peer, network: Subnet, taken: &[(Subnet, &str)]) -> Result<Way, Problem> {
    let node = || peer.name.to_string();
    let overlap = |other: Subnet, of: Option<&str>| Problem::Overlap {
        node: node(),
        network,
        other,
        of: of.map(str::to_owned),
    };
    if own.network.overlaps(&network) {
        return Err(overlap(own.network, None));
    }
    let mut segments = own.segments.iter().map(|segment| segment.subnet);
    if let Some(segment) = segments.find(|segment| hides(network, *segment)) {
        return Err(overlap(segment, None));
    }
    if let Some((other, of)) = taken.iter().find(|(other, _)| other.overlaps(&network)) {
        return Err(overlap(*other, Some(of)));
    }
    let of_family = peer
        .addresses
        .iter()
        .filter(|one| one.is_ipv4() == network.is_ipv4());
    for address in of_family {
        let on = own
            .segments
            .iter()
            .find(|segment| segment.subnet.contains(*address));
        if let Some(segment) = on {
            return Ok(Way::Straight {
                gateway: *address,
                link: segment.link,
            });
        }
    }
    let mut reachable = peer.addresses.iter();
    let address =
        reachable.find(|one| one.is_ipv4() == own.address.is_ipv4() && **one != own.address);
    let first = peer.subnets().next().unwrap_or(network);
    let far_end = address.map(|address| FarEnd {
        hardware: hardware_address(first),
        address: *address,
    });
    far_end.map(Way::Tunnel).ok_or_else(|| Problem::NoAddress {
        node: node(),
        network,
    })
}

/// Whether a route to the network would take away the whole segment. One that takes a part of it
/// is for who gave out the addresses to know.
fn hides(network: Subnet, segment: Subnet) -> bool {
    network.overlaps(&segment) && network.prefix_length <= segment.prefix_length
}

/// Of a node's end of the tunnel, from the first of its networks: known without being told. The
/// words of an IPv6 base are folded, so that two networks differ in it which differ in any
/// consecutive 32 bits.
pub fn hardware_address(network: Subnet) -> [u8; 6] {
    let folded = match network.base() {
        IpAddr::V4(base) => base.octets(),
        IpAddr::V6(base) => {
            let octets = base.octets();
            let mut folded = [0; 4];
            for (index, octet) in octets.iter().enumerate() {
                folded[index % 4] ^= octet;
            }
            folded
        }
    };
    let [first, second] = TUNNEL_PREFIX;
    let [a, b, c, d] = folded;
    [first, second, a, b, c, d]
}

#[cfg(test)]
mod tests;
