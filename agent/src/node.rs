//! The Node object of this machine: made, kept current, and its lease renewed.
//!
//! Status goes out when it changed, looked at every 10 s, and every 5 min in any case; the lease
//! says every 10 s that the node lives. A server that is away is asked again, with jitter.

pub mod allocatable; // What of the machine is for pods. Pure.
mod conditions;
mod facts; // What this machine is.
mod heartbeat;
mod limit; // Holds all pods together to what is for them.
mod object; // The Node from the facts. Pure.
pub mod oom; // What the kernel killed for want of memory.
mod own_addresses; // By which others know this node.
mod register;

use k8s_openapi::api::core::v1::ObjectReference;

pub use facts::Facts;
pub use heartbeat::{Heartbeat, Lease};
pub use limit::limit_pods;
pub use object::{KUBELET_VERSION, resource_list};
pub use own_addresses::OwnAddresses;
pub use register::register;

/// As upstream does, the uid of the reference in events is the node's name.
pub fn reference(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        uid: Some(name.to_owned()),
        name: Some(name.to_owned()),
        ..ObjectReference::default()
    }
}

/// Of the Ready condition and of pods that wait, in the words of a runtime.
pub fn network_not_ready(why: &str) -> String {
    format!(
        "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady \
         message:Network plugin returns error: {why}"
    )
}
