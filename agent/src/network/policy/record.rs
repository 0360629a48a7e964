//! What rules are made of: policies, and pods as far as policies ask about them.
//!
//! Defaults are resolved here. Records are compared as a whole: what is not in them changes nothing.

use super::labels::{Labels, Selector};
use crate::network::nft::{Range, merged, without};
pub use crate::network::view::Key;
use crate::network::view::{Protocol, uid};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use uuid::Uuid;

#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Direction {
    Ingress,
    Egress,
}

pub const DIRECTIONS: [Direction; 2] = [Direction::Ingress, Direction::Egress];

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Policy {
    /// In the policy's namespace.
    pub pods: Selector,
    /// None: the policy does not isolate in this direction.
    pub ingress: Option<Box<[Rule]>>,
    pub egress: Option<Box<[Rule]>>,
}

impl Policy {
    pub fn rules(&self, direction: Direction) -> Option<&[Rule]> {
        match direction {
            Direction::Ingress => self.ingress.as_deref(),
            Direction::Egress => self.egress.as_deref(),
        }
    }
}

/// Lets pass what meets both.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Rule {
    pub peers: Peers,
    /// None: every port of every protocol.
    pub ports: Option<Box<[Port]>>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Peers {
    Everyone,
    Some {
        pods: Box<[PodPeer]>,
        /// What is not excepted of the blocks. They neither overlap nor touch.
        blocks: Box<[Range]>,
    },
}

/// Pods that one entry of `from` or `to` means.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct PodPeer {
    pub namespaces: Namespaces,
    pub pods: Selector,
}

#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Namespaces {
    /// The policy's own.
    One(Box<str>),
    Selected(Selector),
}

/// The networks, each without what is excepted of it: an address that one excepts and another has
/// is let pass.
pub fn blocks(networks: impl IntoIterator<Item = (Range, Vec<Range>)>) -> Box<[Range]> {
    let each = networks.into_iter();
    let left = each.flat_map(|(network, except)| without([network], except));
    merged(left).into()
}

#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Port {
    pub protocol: Protocol,
    pub number: Number,
}

#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Number {
    Any,
    /// Both ends belong to it.
    Between(u16, u16),
    /// Of a port of the pod that is connected to.
    Named(Box<str>),
}

/// A pod with an address of its own.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Pod {
    #[serde(with = "uid")]
    pub uid: Uuid,
    pub labels: Labels,
    pub addresses: Box<[IpAddr]>,
    pub ports: Box<[NamedPort]>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct NamedPort {
    pub name: Box<str>,
    pub protocol: Protocol,
    pub port: u16,
}

impl Pod {
    /// The numbers of its ports of this name.
    pub fn named(&self, protocol: Protocol, name: &str) -> impl Iterator<Item = u16> {
        let ports = self.ports.iter();
        ports
            .filter(move |port| port.protocol == protocol && *port.name == *name)
            .map(|port| port.port)
    }
}
