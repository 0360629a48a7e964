//! What this part has in the kernel's table, in words of its own: names, elements, rules and
//! changes of them. Pure; `kernel` turns it into messages.
//!
//! All endpoints stand in one map a family, under the number of their list and their place in it.
//! A list's number is a hash of what it is of, so that it is the same after a restart and what
//! clients hold to by their affinity goes on.

pub use crate::network::nft::Family;

use crate::network::subnet::Subnet;
use crate::network::view::Protocol;
use std::net::IpAddr;
use std::sync::Arc;

pub const FAMILIES: [Family; 2] = [Family::Ip4, Family::Ip6];

/// At the end of names.
pub fn digit(family: Family) -> char {
    match family {
        Family::Ip4 => '4',
        Family::Ip6 => '6',
    }
}

/// Where a connection is sent to.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Target {
    pub address: IpAddr,
    pub port: u16,
}

/// The endpoints that one chain chooses from.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ListId(pub u64);

/// The port of a Service, for whose clients affinity is kept, whichever list they came by.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct AffinityId(pub u64);

/// Name of a chain. Shared by what leads there.
pub type Chain = Arc<str>;

/// What a packet is found by.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Element {
    /// An address and port of a Service. Leads to a chain.
    Frontend(Frontend),
    /// One that nothing answers behind. Rejected or dropped.
    Closed(Frontend),
    /// One that not everybody may use. Leads to a chain.
    Guarded(Frontend),
    /// On any address of the node. Leads to a chain.
    NodePort(NodePort),
    /// Rejected or dropped.
    ClosedNodePort(NodePort),
    /// The address of a Service within the cluster.
    ClusterIp(IpAddr),
    /// An endpoint on this node, which may reach itself.
    Hairpin(IpAddr),
}

impl Element {
    /// The same way, where it is refused.
    pub fn closed(&self) -> Option<Self> {
        match self {
            Self::Frontend(of) => Some(Self::Closed(*of)),
            Self::NodePort(of) => Some(Self::ClosedNodePort(*of)),
            _ => None,
        }
    }

    /// Where packets are sent to. None for any address of the node.
    pub fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Frontend(of) | Self::Closed(of) | Self::Guarded(of) => Some(of.address),
            Self::ClusterIp(address) | Self::Hairpin(address) => Some(*address),
            Self::NodePort(_) | Self::ClosedNodePort(_) => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Frontend {
    pub address: IpAddr,
    pub protocol: Protocol,
    pub port: u16,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct NodePort {
    pub family: Family,
    pub protocol: Protocol,
    pub port: u16,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Value {
    Goto(Chain),
    Reject,
    Drop,
    /// Of an element of a set, which has none.
    Nothing,
}

/// A rule of a Service's chain.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Rule {
    /// To one of the list's endpoints by chance.
    Balance(Balance),
    /// To the endpoint that the client has, if it is still of the list.
    Keep {
        balance: Balance,
        sticky: Sticky,
    },
    /// What the client has is not of the list.
    Forget {
        family: Family,
        sticky: Sticky,
    },
    /// By chance, and the client keeps it. No match when no more can be kept.
    BalanceAndKeep {
        balance: Balance,
        sticky: Sticky,
    },
    /// It leaves with the node's address, so that the answer comes by here.
    Masquerade,
    /// The same for what the node itself sends.
    MasqueradeLocal,
    Goto(Chain),
    GotoIfFrom(Subnet, Chain),
    GotoIfLocal(Chain),
    ReturnIfFrom(Subnet),
    Drop,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Balance {
    pub family: Family,
    pub list: ListId,
    pub count: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sticky {
    pub id: AffinityId,
    pub seconds: u32,
}

/// A step of a batch.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// No harm when it is there.
    AddChain(Chain),
    /// In place of what it has.
    SetRules(Chain, Vec<Rule>),
    /// It must have no way to it any more.
    DeleteChain(Chain),
    Add(Element, Value),
    Delete(Element, Value),
    AddTarget {
        list: ListId,
        place: u32,
        target: Target,
    },
    /// The kernel needs the target to find its family only.
    DeleteTarget {
        list: ListId,
        place: u32,
        target: Target,
    },
    /// Of a list that affinity asks about.
    AddMember(ListId, Target),
    DeleteMember(ListId, Target),
}
