//! How a node comes to its identity: a token first, a certificate from then on.
//!
//! The token names the server's certificate authority by its hash; the first connection believes
//! nobody and takes that one certificate, every later one believes it alone. Keys are made here,
//! never leave the machine, and are in files of mode 0600. Certificates are asked for by
//! certificate signing requests and renewed while the agent runs.

mod files; // pki/ on disk.
mod identity; // The node's client certificate.
mod joining; // The same by a kubeconfig, in a cluster that is not ours.
mod lifetime; // When to renew. Pure.
mod renewal;
mod request; // One certificate signing request.
mod token;

pub use files::Pair;
pub use identity::{Enrolled, enrol};
pub use lifetime::Lifetime;
pub use renewal::Keeper;
pub use token::{Token, parse_token};
