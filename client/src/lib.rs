//! What every Kubernetes client in Coracle stands on: controllers, scheduler and agent.
//!
//! A `kube::Client` over TLS (or over the in-process API, made by the binary), shared informers,
//! work queues and the loop around them, expectations, events, leases, and the one clock. Knows
//! nothing about particular controllers.

pub mod clock; // The one place that reads the time.

pub mod connect; // From an address and an identity to a client.
pub mod port; // One's own, where that server says who may ask.
pub mod upgrade; // The raw connection that the agent's tunnel needs.

pub mod informer; // A local, indexed copy of one kind.

pub mod queue; // Which keys to look at.

pub mod control_loop; // Looks at them.

pub mod expectations; // Pods that were asked for and are not seen yet.
pub mod own_writes; // Whether the copy shows what was written.

pub mod patch; // Writes with preconditions.

pub mod pod_cidrs; // Which networks a Node's pods have.

pub mod node_selector; // Whether a node selector term matches a node.
pub mod pod_claims; // Which claims a pod uses.
pub mod toleration; // Whether a toleration bears a taint.
pub mod volumes; // What claims ask for and which volume they get.

pub mod events;
pub mod lease;

pub use coracle_api::object::ObjectKey;

/// Everything speaks through kube's client, whatever lies below it.
pub type Client = kube::Client;

/// The key under which an object is found in informers and queues.
pub fn key_of<K: kube::Resource>(object: &K) -> ObjectKey {
    let meta = object.meta();
    ObjectKey::new(
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default(),
    )
}

#[cfg(test)]
mod fake_api;
