//! The three client-side patches: JSON patch, JSON merge patch, strategic merge patch. Pure.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself is not well formed: 400.
    #[error("{0}")]
    Malformed(String),
    /// The patch does not apply to this object: 422.
    #[error("{0}")]
    NotApplicable(String),
}

pub fn json_patch(_current: &Value, _patch: &[u8]) -> Result<Value, PatchError> {
    Err(PatchError::Malformed("not yet".into()))
}

pub fn merge_patch(_current: &Value, _patch: &Value) -> Result<Value, PatchError> {
    Err(PatchError::Malformed("not yet".into()))
}

pub fn strategic_merge_patch(
    _current: &Value,
    _patch: &Value,
    _type_name: &str,
) -> Result<Value, PatchError> {
    Err(PatchError::Malformed("not yet".into()))
}
