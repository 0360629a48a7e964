//! Who is asking: the chain of authenticators, in upstream's order.
//!
//! A client certificate or a bearer token names a user; a request with neither is anonymous. A
//! token that nobody knows is 401, never anonymous. Whether the user may do anything is not
//! decided here.

pub mod user; // The user, and the names and groups that Kubernetes knows.

pub use user::User;
