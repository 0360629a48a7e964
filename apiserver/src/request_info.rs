//! What a request asks for: verb, group, version, resource, subresource, namespace, name.
//!
//! Authorization, admission and the verbs read this and never the URL. Nothing here looks a
//! resource up: an unknown resource has a `RequestInfo` too, so that it can be refused.

/// A request in the words of RBAC. Empty strings stand for what the request does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; the
    /// lower-case HTTP method when this is no resource request.
    pub verb: String,
    pub group: String,
    pub version: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub is_resource_request: bool,
    pub path: String,
    /// `fieldSelector` and `labelSelector` of the query, as the client wrote them.
    pub field_selector: String,
    pub label_selector: String,
}
