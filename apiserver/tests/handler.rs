//! The API through its service in this process: every verb and the rules of each.

#![allow(clippy::unwrap_used)] // A test may stop where it stands.

mod handler {
    mod basics; // Get, create, update, and what is refused.
    mod deletion; // Grace, finalizers, preconditions, collections.
    mod documents; // Discovery, OpenAPI, health, version, metrics.
    mod forms; // Tables, YAML, partial metadata.
    mod lists; // Pages, selectors, revisions.
    mod patches; // The three kinds of patch, status, scale, binding.
    mod protobuf; // Bodies and answers in protobuf.
    mod site; // A server over a temporary store.
    mod watches; // Events, selectors, bookmarks, the initial list.
}
