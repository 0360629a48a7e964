//! The API through its service in this process: every verb and the rules of each.

#![allow(clippy::unwrap_used)] // A test may stop where it stands.

mod handler {
    mod addresses; // Of Services, out of line.
    mod aggregation; // APIs of other servers.
    mod audit; // What plugins leave in the record of a request.
    mod bad_input; // Over the network, from strangers and forgers.
    mod basics; // Get, create, update, and what is refused.
    mod custom_resources; // Kinds that users bring.
    mod custom_webhooks; // What webhooks make of kinds that users bring.
    mod deletion; // Grace, finalizers, preconditions, collections.
    mod documents; // Discovery, OpenAPI, health, version, metrics.
    mod equivalents; // Webhooks and policies that mean another version of a kind.
    mod fairness; // A noisy client, and those that must not notice it.
    mod forms; // Tables, YAML, partial metadata.
    mod grants; // Nobody grants what they do not have.
    mod hooks; // A server of webhooks, in this process.
    mod identity; // That the server is there, said in a Lease.
    mod lists; // Pages, selectors, revisions.
    mod managers; // Who manages which field, and server-side apply.
    mod metrics; // What is counted, as a scraper finds it.
    mod negotiation; // Accept headers, failures in each form, compression, methods and paths.
    mod patches; // The three kinds of patch, status, scale, binding.
    mod policies; // What policies of expressions say of writes.
    mod protobuf; // Bodies and answers in protobuf.
    mod quotas; // What a namespace has no room for.
    mod references; // What a write refers to, and whether its author has a right to that.
    mod refusals; // Every route and verb, to whom nothing was given.
    mod secrets_at_rest; // What is on the disk, and under which key.
    mod site; // A server over a temporary store.
    mod snapshots; // Of the running server.
    mod tokens; // Tokens of service accounts, as others check them.
    mod usage; // What nodes and pods use.
    mod watches; // Events, selectors, bookmarks, the initial list.
    mod web_sockets; // Watches as messages.
    mod webhooks; // What they change, and what they say no to.
}
