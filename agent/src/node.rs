//! The Node object of this machine: made, kept current, and its lease renewed.
//!
//! Status goes out when it changed, looked at every 10 s, and every 5 min in any case; the lease
//! says every 10 s that the node lives. A server that is away is asked again, with jitter.

mod conditions;
mod facts; // What this machine is.
mod heartbeat;
mod object; // The Node from the facts. Pure.
mod register;

pub use facts::{Facts, node_address};
pub use heartbeat::{Heartbeat, Lease};
pub use register::register;

/// Of the Ready condition and of pods that wait, while there is no podCIDR.
pub const NETWORK_NOT_READY: &str = "container runtime network not ready: NetworkReady=false \
     reason:NetworkPluginNotReady message:Network plugin returns error: no podCIDR was given to \
     this node yet";
