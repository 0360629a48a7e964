//! Which devices the claims of a pod get on one node. Pure; start reading at `search`.
//!
//! The same devices in the same order as upstream: pools by driver and name, those with binding
//! conditions last; slices by name, devices as they are written; the first that all requests and
//! constraints let through. Works on a copy of what is known, so nothing changes during a search.

mod asks; // What claims ask for.
mod capacity; // How much of a device one request takes.
mod constraints; // What the devices of a claim have in common, or not.
mod counters; // What devices of a pool share.
mod outcome; // What is written into claims.
mod pools; // Which devices a node has.
mod search; // The search.
mod stock; // What there is, and what of it is taken.

pub use pools::devices_for;
pub use search::{Tools, allocate};
pub use stock::Stock;

/// Devices of one claim, as the API lets in.
const RESULTS_MAX: usize = 32;

/// Why claims get nothing on a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocateError {
    /// The devices that are free do not do.
    #[error("cannot allocate all claims")]
    NotEnough,
    /// Pools of the node contradict themselves.
    #[error("invalid resource pools were encountered")]
    InvalidPools,
    /// The search took too long.
    #[error("timed out trying to allocate devices")]
    Late,
    /// Something is wrong with a claim, a class or a device; another node helps no more.
    #[error("{0}")]
    Wrong(String),
}

#[cfg(test)]
mod tests;
