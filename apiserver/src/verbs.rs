//! One file a verb; none names a kind.

pub mod asked; // A request for a resource, with all that a verb needs of it.
pub mod decode; // From a body to an object of the kind that the endpoint takes.
pub mod references; // What a write refers to, and whether its author has a right to that.
pub mod write; // What create, update and patch share: the order of a write.
pub mod write_options; // The options of writes.

pub mod apply; // The patch that is server-side apply.
pub mod components; // What is told of the parts of the control plane.
pub mod create;
pub mod delete;
pub mod delete_collection;
pub mod get;
pub mod list;
pub mod measured; // What nodes and pods use.
pub mod patch;
pub mod told; // Lists of what is never stored.
pub mod update;
pub mod watch;

pub mod act; // What subresources that act on an object share.
pub mod bind; // The subresource `binding`.
pub mod evict; // The subresource `eviction`.
pub mod scale; // The subresource `scale`.
pub mod token; // The subresource `token`.
