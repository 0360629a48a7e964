//! The API server: HTTP and TLS, who you are, what you may do, admission, verbs, discovery.
//!
//! The only user of the store. Knows no kind by name: the catalogue does.

pub mod access; // All of the following, set up together.
pub mod admission; // What may still change or stop a write.
pub mod authenticate; // Who is asking.
pub mod authorize; // What a user may do.
pub mod bootstrap; // The RBAC objects that the server brings itself.
pub mod bootstrap_tokens; // Tokens for enrolling nodes.
pub mod pki; // The cluster's CA and what it signs for this server.
pub mod query; // The query of a URL.
pub mod request_info; // What a request asks for.
pub mod reviews; // Questions about access and identity.
pub mod streaming; // Logs, exec, attach.
pub mod tunnel; // The nodes' connections.
pub mod view; // Read-only access to stored objects.
