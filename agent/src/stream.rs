//! What the API server asks of a node: logs, commands, health, with the kubelet's paths. Over a
//! connection that the node dialled, in HTTP/2, or over one to the node's own port (`crate::port`).
//!
//! Who may ask what was decided before; nothing here looks at that.

mod answer; // Bodies and refusals.
mod configz; // Settings.
mod dial; // Connections to pods and from the node.
mod exec;
mod health;
mod local_volumes; // Directories of volumes that go.
mod logs;
mod node_logs; // Files of `/var/log`.
mod numbers; // Usage and metrics.
mod pods;
mod request; // Paths and queries. Pure.
mod serve;
mod sessions; // Commands and forwarded ports.
mod tunnel;

pub use answer::{Body, refuse};
pub use serve::{Server, Way};
pub use tunnel::Tunnel;
