//! WireGuard between nodes: one link, `coracle-wg`, behind which all other nodes' pods are. The
//! kernel does it where it can; elsewhere a thread of the agent does.

mod guard; // Nothing leaves in plain text.
mod kernel; // The kernel's, told over generic netlink.
mod key;
mod link; // What both have: an address, an MTU.
mod setting; // What the server says.
mod user; // The agent's own, over a tun device.

pub use guard::{Guard, guarded_ranges};
pub use key::{ANNOTATION, KeyPair, PublicKey};
pub use link::{Encrypted, Wanted, inner_mtu, remove};
pub use setting::{Following, NAMESPACE, Setting, Told};

use super::subnet::Subnet;
use std::collections::BTreeMap;
use std::net::SocketAddr;

pub const DEVICE: &str = "coracle-wg";

/// Another node, as it is planned.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Peer {
    pub endpoint: SocketAddr,
    /// Of its pods, and nobody else's.
    pub networks: Vec<Subnet>,
}

pub type Peers = BTreeMap<PublicKey, Peer>;
