//! The API server: HTTP and TLS, who you are, what you may do, admission, verbs, discovery.
//!
//! The only user of the store. Knows no kind by name: the catalogue does.

// The server and the way of a request through it.
pub mod api; // From a request to an answer: the pipeline.
pub mod config; // What the server is told at start.
pub mod server; // Opened, made ready, served, drained.

// A request.
pub mod body; // Bodies, bounded.
pub mod deadline; // How long a request may take.
pub mod options; // The options in a query, checked.
pub mod query; // The query of a URL.
pub mod request_info; // What a request asks for.
pub mod respond; // Which form a client takes, and bodies in that form.
pub mod routes; // Which row of the catalogue it is for.
pub mod verbs; // One file a verb.
pub mod warnings; // What the client should hear beside the answer.

// Objects.
pub mod allocate; // Addresses and node ports of Services.
pub mod at_rest; // What is sealed before it reaches the disk.
pub mod custom; // Kinds that users bring.
pub mod registry; // Objects in the store.
pub mod snapshots; // All of them, and the cluster's keys, in one file.
pub mod usage; // What nodes and pods use.
mod view; // Read-only access to stored objects.

// Who may do what.
pub mod access; // All of the following, set up together.
pub mod admission; // What may still change or stop a write.
pub mod audit; // Who asked what.
pub mod authenticate; // Who is asking.
pub mod authorize; // What a user may do.
pub mod bootstrap_tokens; // Tokens for enrolling nodes.
pub mod fairness; // No client takes the server away from the others.
pub mod jose; // JSON Web Tokens and the keys that sign and check them.
pub mod pki; // The cluster's CA and what it signs for this server.
pub mod private_file; // Files that hold secrets.
pub mod reviews; // Questions about access and identity.
pub mod tokens; // Tokens of service accounts, signed and checked.

// What exists from the start.
mod advertise; // The address by which others reach this machine.
mod api_services; // The API services of what is served here.
pub mod bootstrap; // The RBAC objects that the server brings itself.
pub mod default_objects; // Everything else that is there from the start.
mod event_ttl; // Their end.
mod events; // What the server tells of objects.
pub mod flow_configuration; // The flow schemas and priority levels that every server has.
mod identity; // That this server is there, said in a Lease.

// Beside resources.
pub mod aggregation; // APIs of other servers.
pub mod endpoints; // Health, version, discovery, OpenAPI.
pub mod fetch; // Documents from elsewhere.
pub mod metrics; // What is counted.
pub mod webhook; // Calls to others' webhooks.

// Nodes.
pub mod policy_feed; // What they need for NetworkPolicy.
pub mod proxy; // Requests passed on to pods, services and nodes.
pub mod streaming; // Logs, exec, attach, forwarded ports.
pub mod tunnel; // The nodes' connections.

pub use api::Api;
pub use config::Config;
pub use server::{BuildError, InProcess, Server};
