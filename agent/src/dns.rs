//! The cluster's DNS, answered on every node for the node's own pods.
//!
//! It listens on the addresses of the Service `kube-system/kube-dns`, which it gives to a link of
//! its own, so that a question never leaves the node. Names of the cluster come from the view;
//! everything else is asked of the node's own resolvers. What was known last is answered while
//! the server is away, and from the node's disk after a restart.

mod asked; // What a name asks for. Pure: start reading here.
mod cache; // What others answered. Pure.
mod forward; // Asks others.
mod listen; // Sockets.
mod message; // Packets. Pure.
mod resolvers; // Whom to ask.
mod responder; // A packet in, a packet out.
mod serve; // When and where.
mod targets; // What Services lead to. Pure.
mod zone; // The cluster's names. Pure.

pub use serve::{ClusterDns, DOMAIN_DEFAULT, Service, cluster_dns};

#[cfg(test)]
mod testing; // A resolver that answers as it is asked to.
