//! Discovery documents from the catalogue.

use serde_json::{Value, json};

/// Content type of aggregated discovery.
pub const AGGREGATED_V2: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Whether an `Accept` header asks for aggregated discovery before anything else.
pub fn wants_aggregated(_accept: &str) -> bool {
    false
}

/// `/api`. `server_address` is `host:port` of this server.
pub fn api_versions(_server_address: &str) -> Value {
    json!({})
}

/// `/apis`.
pub fn group_list() -> Value {
    json!({})
}

/// `/apis/GROUP`.
pub fn group(_name: &str) -> Option<Value> {
    None
}

/// `/api/v1` (empty group) and `/apis/GROUP/VERSION`.
pub fn resource_list(_group: &str, _version: &str) -> Option<Value> {
    None
}

/// Aggregated discovery of `/api` (the core group).
pub fn aggregated_core() -> Value {
    json!({})
}

/// Aggregated discovery of `/apis`.
pub fn aggregated_groups() -> Value {
    json!({})
}
