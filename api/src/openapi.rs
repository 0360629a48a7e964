//! OpenAPI documents of the served kinds.

use serde_json::{Value, json};

/// `/openapi/v3`.
pub fn v3_index() -> Value {
    json!({})
}

/// `/openapi/v3/PATH`, for example `apis/apps/v1`; JSON.
pub fn v3_group(_path: &str) -> Option<Vec<u8>> {
    None
}

/// `/openapi/v2`; JSON.
pub fn v2() -> Vec<u8> {
    Vec::new()
}
