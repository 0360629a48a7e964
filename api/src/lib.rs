//! The catalogue: every kind Coracle serves, as pure knowledge.
//!
//! No tokio, no I/O, no clock: time and randomness are arguments. Nothing here knows the store,
//! HTTP connections or who is asking.

pub mod object; // The dynamic object: a JSON document with cheap access to metadata.
pub mod field; // Field paths and field errors, in upstream's words.
pub mod status; // Kubernetes `Status`: one constructor a reason.
pub mod resource; // One row a resource, and the rules behind a kind.
