//! By which way each other node's pods are reached. Pure.

use super::record::Peer;
use crate::families::Families;
use crate::network::subnet::Subnet;
use crate::network::wireguard::PublicKey;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

/// A hardware address that is locally administered, and not one of pods (0a:58).
const TUNNEL_PREFIX: [u8; 2] = [0x0a, 0x59];

#[derive(Clone, Debug)]
pub struct Own {
    pub name: String,
    /// Of its pods. Never empty.
    pub networks: Families<Subnet>,
    /// By which others know it. Never empty.
    pub addresses: Families<IpAddr>,
    pub segments: Vec<Segment>,
    /// Where the API server is.
    pub servers: BTreeSet<IpAddr>,
    /// This node's, where all that nodes send each other's pods is encrypted.
    pub key: Option<PublicKey>,
}

impl Own {
    /// Where its end of the tunnel is in the world: of IPv4 if it can be, as all nodes that have both
    /// families choose, whatever comes first at them.
    pub fn underlay(&self) -> IpAddr {
        let v4 = self.addresses.of(true).or(self.addresses.first());
        v4.expect("a node has an address")
    }

    /// Of its end of the tunnel.
    pub fn hardware_address(&self) -> [u8; 6] {
        hardware_address(self.networks.first().expect("a node has a network"))
    }

    fn has(&self, address: IpAddr) -> bool {
        let mut on_segments = self.segments.iter().map(|segment| segment.address);
        self.addresses.contains(&address) || on_segments.any(|own| own == address)
    }

    /// Whether the address, as a node says it has it, may be that of another node.
    fn may_send_to(&self, address: IpAddr) -> bool {
        let is_of_none = address.is_unspecified()
            || address.is_loopback()
            || address.is_multicast()
            || address == IpAddr::V4(Ipv4Addr::BROADCAST);
        !is_of_none && !self.has(address)
    }
}

/// A network that a link of this node is on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Segment {
    pub subnet: Subnet,
    pub link: u32,
    /// Of this node.
    pub address: IpAddr,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Plan {
    /// No two overlap, and none overlaps what is this node's own.
    pub routes: Vec<Route>,
    /// Of nodes that could be reached in plain text alone, and are not.
    pub closed: BTreeSet<Subnet>,
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
    /// To whom has the key, whose node has this address.
    Encrypted {
        key: PublicKey,
        address: IpAddr,
    },
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
    /// Nor would the API server.
    HidesServer {
        node: String,
        network: Subnet,
        address: IpAddr,
    },
    /// The node's end of the tunnel is known by a network that is not its own.
    NoEnd {
        node: String,
        network: Subnet,
        first: Subnet,
    },
    /// Another node's end has the hardware address that its own would have.
    EndTaken {
        node: String,
        network: Subnet,
        of: String,
    },
    /// No address of the node that this one could send to.
    NoAddress { node: String, network: Subnet },
    /// Nothing could be encrypted for it.
    NoKey { node: String, network: Subnet },
    /// Another node's is the same.
    KeyTaken {
        node: String,
        network: Subnet,
        of: String,
    },
    /// The pods' network of this node lies over one that it is on.
    OwnOverlap { network: Subnet, segment: Subnet },
    /// Someone else made one.
    RouteTaken { network: Subnet },
    /// The link that encrypts is not there.
    NotEncrypted { reason: String },
    /// The kernel would not have it.
    Refused { network: Subnet, reason: String },
}

impl Problem {
    /// Without a change of nodes or links: the kernel may have been short of memory.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::NotEncrypted { .. })
    }

    /// Of a node that has just come: it says itself what is missing, a moment later.
    pub fn is_early(&self) -> bool {
        matches!(self, Self::NoKey { .. })
    }
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
            Self::HidesServer {
                node,
                network,
                address,
            } => write!(
                f,
                "No route to the pods of node {node}: \
                 its podCIDR {network} has the address {address} of the API server in it"
            ),
            Self::NoEnd { node, network, .. }
            | Self::EndTaken { node, network, .. }
            | Self::NoAddress { node, network }
            | Self::NoKey { node, network }
            | Self::KeyTaken { node, network, .. } => write!(
                f,
                "No route to the pods of node {node} in {network}: {}",
                self.of_the_way().unwrap_or_default()
            ),
            Self::OwnOverlap { network, segment } => write!(
                f,
                "The podCIDR {network} of this node overlaps the network {segment} that it is on"
            ),
            Self::RouteTaken { network } => write!(
                f,
                "No route to the podCIDR {network}: there is one already that is not Coracle's"
            ),
            Self::NotEncrypted { reason } => write!(
                f,
                "No pod reaches another node: traffic between nodes is encrypted, and: {reason}"
            ),
            Self::Refused { network, reason } => write!(
                f,
                "No route to the podCIDR {network}: the kernel refuses it: {reason}"
            ),
        }
    }
}

impl Problem {
    /// Why nothing leads to a network that is the node's.
    fn of_the_way(&self) -> Option<String> {
        Some(match self {
            Self::NoEnd { first, .. } => format!(
                "its end of the tunnel is known by its first podCIDR {first}, which has no route"
            ),
            Self::EndTaken { of, .. } => {
                format!("its end of the tunnel cannot be told from that of node {of}")
            }
            Self::NoAddress { .. } => {
                "it has no InternalIP that this node could send to".to_owned()
            }
            Self::NoKey { .. } => {
                "traffic between nodes is encrypted, and it has no key of WireGuard".to_owned()
            }
            Self::KeyTaken { of, .. } => {
                format!("its key of WireGuard is that of node {of}")
            }
            _ => return None,
        })
    }
}

pub fn plan(own: &Own, nodes: &BTreeMap<Box<str>, Peer>) -> Plan {
    let mut plan = Plan::default();
    for network in own.networks.iter() {
        let segments = own.segments.iter().map(|segment| segment.subnet);
        let hidden = segments.filter(|segment| hides(network, *segment));
        let problems = hidden.map(|segment| Problem::OwnOverlap { network, segment });
        plan.problems.extend(problems);
    }
    let mut peers: Vec<_> = nodes
        .values()
        .filter(|peer| *peer.name != *own.name)
        .collect();
    peers.sort_by_key(|peer| (peer.created, &peer.name));
    let mut taken = Taken::default();
    taken.ends.insert(own.hardware_address(), own.name.as_str());
    taken
        .keys
        .extend(own.key.map(|key| (key, own.name.as_str())));
    let itself = nodes.get(own.name.as_str());
    taken.nodes.extend(own.addresses.iter());
    taken
        .nodes
        .extend(itself.iter().flat_map(|node| &node.addresses));
    for peer in peers {
        if peer.addresses.is_empty() {
            continue; // It has just come, and will say.
        }
        // A node says itself which addresses it has: those of a later one take nothing away.
        taken.nodes.extend(&peer.addresses);
        for text in &peer.networks {
            let Some(network) = Subnet::parse(text) else {
                plan.problems.insert(Problem::NoNetwork {
                    node: peer.name.to_string(),
                    network: text.to_string(),
                });
                continue;
            };
            match way(own, peer, network, &mut taken) {
                Ok(way) => {
                    taken.networks.push((network, &peer.name));
                    plan.routes.push(Route { network, way });
                }
                Err(problem) => {
                    // What is the node's, and could be sent in plain text alone.
                    if own.key.is_some() && problem.of_the_way().is_some() {
                        taken.networks.push((network, &peer.name));
                        plan.closed.insert(network);
                    }
                    plan.problems.insert(problem);
                }
            }
        }
    }
    plan.routes.sort_by_key(|route| route.network);
    plan
}

/// What nodes have that were looked at already: this one, and the older ones.
#[derive(Debug, Default)]
struct Taken<'a> {
    nodes: Vec<IpAddr>,
    /// Those with a route.
    networks: Vec<(Subnet, &'a str)>,
    /// Hardware addresses in the tunnel.
    ends: BTreeMap<[u8; 6], &'a str>,
    keys: BTreeMap<PublicKey, &'a str>,
}

fn way<'a>(
    own: &Own,
    peer: &'a Peer,
    network: Subnet,
    taken: &mut Taken<'a>,
) -> Result<Way, Problem> {
    is_free(own, peer, network, taken)?;
    if own.key.is_some() {
        return encrypted(own, peer, network, taken);
    }
    let mut of_family = peer
        .addresses
        .iter()
        .filter(|one| one.is_ipv4() == network.is_ipv4() && own.may_send_to(**one));
    let straight = of_family.find_map(|address| {
        let mut segments = own.segments.iter();
        let on = segments.find(|segment| segment.subnet.contains(*address))?;
        Some(Way::Straight {
            gateway: *address,
            link: on.link,
        })
    });
    match straight {
        Some(way) => Ok(way),
        None => far_end(own, peer, network, taken).map(Way::Tunnel),
    }
}

fn is_free(own: &Own, peer: &Peer, network: Subnet, taken: &Taken<'_>) -> Result<(), Problem> {
    let node = || peer.name.to_string();
    let within = |address: &&IpAddr| network.contains(**address);
    if let Some(address) = taken.nodes.iter().find(within) {
        return Err(Problem::HidesNode {
            node: node(),
            network,
            address: *address,
        });
    }
    if let Some(address) = own.servers.iter().find(within) {
        return Err(Problem::HidesServer {
            node: node(),
            network,
            address: *address,
        });
    }
    let overlap = |other: Subnet, of: Option<&str>| Problem::Overlap {
        node: node(),
        network,
        other,
        of: of.map(str::to_owned),
    };
    if let Some(own) = own.networks.iter().find(|one| one.overlaps(&network)) {
        return Err(overlap(own, None));
    }
    let mut segments = own.segments.iter().map(|segment| segment.subnet);
    if let Some(segment) = segments.find(|segment| hides(network, *segment)) {
        return Err(overlap(segment, None));
    }
    let mut others = taken.networks.iter();
    match others.find(|(other, _)| other.overlaps(&network)) {
        Some((other, of)) => Err(overlap(*other, Some(of))),
        None => Ok(()),
    }
}

fn far_end<'a>(
    own: &Own,
    peer: &'a Peer,
    network: Subnet,
    taken: &mut Taken<'a>,
) -> Result<FarEnd, Problem> {
    let (name, node) = (&*peer.name, || peer.name.to_string());
    let address = reachable(own, peer, network)?;
    let first = peer.subnets().next().unwrap_or(network);
    if first != network && !taken.networks.contains(&(first, name)) {
        return Err(Problem::NoEnd {
            node: node(),
            network,
            first,
        });
    }
    let hardware = hardware_address(first);
    let of = *taken.ends.entry(hardware).or_insert(name);
    if of != name {
        return Err(Problem::EndTaken {
            node: node(),
            network,
            of: of.to_owned(),
        });
    }
    Ok(FarEnd { hardware, address })
}

/// The first address of the node that this one can send to from its own.
fn reachable(own: &Own, peer: &Peer, network: Subnet) -> Result<IpAddr, Problem> {
    let is_ipv4 = own.underlay().is_ipv4();
    // Its own end is of the family that it prefers as this node does: at another it hears nothing.
    let has_its_end = peer.addresses.iter().any(IpAddr::is_ipv4) == is_ipv4;
    let mut addresses = peer.addresses.iter();
    let first = addresses.find(|one| one.is_ipv4() == is_ipv4 && own.may_send_to(**one));
    let first = first.filter(|_| has_its_end).copied();
    first.ok_or_else(|| Problem::NoAddress {
        node: peer.name.to_string(),
        network,
    })
}

fn encrypted<'a>(
    own: &Own,
    peer: &'a Peer,
    network: Subnet,
    taken: &mut Taken<'a>,
) -> Result<Way, Problem> {
    let node = || peer.name.to_string();
    let key = peer.key.as_deref().and_then(PublicKey::parse);
    let Some(key) = key else {
        return Err(Problem::NoKey {
            node: node(),
            network,
        });
    };
    let of = *taken.keys.entry(key).or_insert(&peer.name);
    if of != &*peer.name {
        return Err(Problem::KeyTaken {
            node: node(),
            network,
            of: of.to_owned(),
        });
    }
    let address = reachable(own, peer, network)?;
    Ok(Way::Encrypted { key, address })
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
