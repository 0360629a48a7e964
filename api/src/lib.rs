//! The catalogue: every kind Coracle serves, as pure knowledge.
//!
//! No tokio, no I/O, no clock: time and randomness are arguments. Nothing here knows the store,
//! HTTP connections or who is asking. The groups below are in reading order.

// What everything is made of.
pub mod field; // Field paths and field errors, in upstream's words.
pub mod json; // Reading and defaulting the fields of a JSON value, as Go reads them.
pub mod object; // The dynamic object: a JSON document with cheap access to metadata.
pub mod resource; // One row a resource, and the rules behind a kind.
pub mod status; // Kubernetes `Status`: one constructor a reason.

// What the rules of the kinds are made of.
pub mod amounts; // Amounts by the names of resources.
pub mod cel; // Expressions, as far as the API looks at them.
pub mod cron; // Schedules of cron jobs, and the names of time zones.
pub mod der; // Elements of certificates and keys.
pub mod exposition; // Metrics as text.
pub mod go_duration; // Durations as Go writes them.
pub mod go_regexp; // Regular expressions as Go reads them.
pub mod go_value; // Values as upstream's errors show them.
pub mod go_zero; // What Go writes of fields that nobody set.
pub mod label_selector; // Validation of LabelSelector documents.
pub mod meta_validate; // Validation of `metadata`, the same for every kind.
pub mod names; // What names, labels and ports may look like, in upstream's words.
pub mod pod_spec; // The pod spec, shared by pods and pod templates.
pub mod print; // Ages for people.
pub mod quantity; // Kubernetes quantities: `100m`, `1Gi`.
pub mod serial_number; // Serial numbers of certificates, which say when.
pub mod structural; // Values and the schemas of custom resources.
pub mod timestamp; // RFC 3339 times, to the second and to the microsecond.
pub mod toleration; // Whether a toleration bears a taint.
pub mod url; // URLs, taken apart as Go takes them apart.

// The kinds.
pub mod catalogue; // The one table of resources.
pub mod custom; // Kinds that users bring.
pub mod deletion; // What deletions of the kinds differ in.
pub mod kinds; // One file or folder a kind.
pub mod quota; // What objects use of quotas, and whether it is enough.
pub mod scale; // The Scale seen through a workload.
pub mod table; // The Table that `kubectl get` prints.

// From the wire, and onto it.
pub mod apply; // Who manages which field, and server-side apply.
pub mod decode; // Bytes into an object of a known type.
pub mod discovery; // Discovery documents.
pub mod frames; // Frames of the stream between API server and agent.
pub mod node_endpoints; // What allows a path of a node's port.
pub mod openapi; // OpenAPI v2 and v3 documents.
pub mod patch; // JSON patch, merge patch, strategic merge patch.
pub mod policy_feed; // What nodes are told for NetworkPolicy.
pub mod protobuf; // The protobuf form of objects, to and from JSON.
pub mod schema; // Types, fields, list types and merge keys of every kind.
pub mod scheme; // What is said of bodies of the wrong kind.
pub mod selector; // Label and field selectors.
