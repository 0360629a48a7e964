//! What the API server asks of a node: logs, commands, health, over a connection that the node
//! dialled. HTTP/2, with the node as its server; the paths are the kubelet's.
//!
//! Who may ask what was decided by the API server; nobody else can reach this.

mod answer; // Bodies and refusals.
mod configz; // Settings.
mod dial; // Connections to pods and from the node.
mod exec;
mod health;
mod logs;
mod node_logs; // Files of `/var/log`.
mod numbers; // Usage and metrics.
mod pods;
mod request; // Paths and queries. Pure.
mod serve;
mod tunnel;

pub use tunnel::Tunnel;
