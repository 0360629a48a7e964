//! The pod spec: what pods and all pod templates have in common.
//!
//! Knows nothing of a pod's own metadata, status or updates: that is `kinds::pod`.

pub mod defaults;
pub mod resources;
pub mod validate;
pub mod warnings;
