//! The three client-side patches: JSON patch, JSON merge patch, strategic merge patch.
//!
//! Pure: a document and a patch in, a new document out. Neither validates the result:
//! [`crate::decode::conform`] does that. Bounded: the number of operations, and what copies add.

mod json; // Operations, brought into the form of the RFC.
mod strategic;

use crate::decode::NESTING_MAX;
use crate::schema::schema;
use json_patch::{PatchErrorKind, PatchOperation};
use serde_json::Value;

/// As upstream: bounds the work of one request.
pub const JSON_PATCH_OPERATIONS_MAX: usize = 10_000;

/// As upstream: what all `copy` operations of one patch may add, in bytes. Without it a small
/// patch could double a document at each of its operations.
const JSON_PATCH_COPY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// The message of the 422 for a patch that does not apply.
pub const REJECTED: &str = "the server rejected our request due to an error in our request";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself is not well formed: 400.
    #[error("{0}")]
    Malformed(String),
    /// The patch does not apply to this object: 422. The text is for the log; upstream answers with
    /// [`REJECTED`].
    #[error("{0}")]
    NotApplicable(String),
    /// A test that the patch has does not hold: 422, as above.
    #[error("{0}")]
    TestFailed(String),
    /// The patch asks for what cannot be done, in a way that upstream did not foresee: 500 without
    /// a reason.
    #[error("{0}")]
    Failed(String),
    /// 413.
    #[error(
        "The allowed maximum operations in a JSON patch is {JSON_PATCH_OPERATIONS_MAX}, got {0}"
    )]
    TooManyOperations(usize),
}

/// Bounds the work that `move` operations make us do to measure what they move.
const JSON_PATCH_MOVE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// RFC 6902, as upstream has it.
pub fn json_patch(current: &Value, patch: &[u8]) -> Result<Value, PatchError> {
    let operations = json::operations(patch)?;
    if operations.len() > JSON_PATCH_OPERATIONS_MAX {
        return Err(PatchError::TooManyOperations(operations.len()));
    }
    let mut document = current.clone();
    let mut growth = Growth::default();
    for mut operation in operations {
        let moves = operation.get("op").is_some_and(|verb| verb == "move");
        let Some(operation) = json::canonical(&mut document, &mut operation)? else {
            continue;
        };
        growth.admit(&document, &operation, moves)?;
        // The document is ours alone: what a failed operation leaves behind is never seen.
        json_patch::patch_unsafe(&mut document, std::slice::from_ref(&operation))
            .map_err(|error| not_applicable(&operation, &error))?;
    }
    Ok(document)
}

fn not_applicable(operation: &PatchOperation, error: &json_patch::PatchError) -> PatchError {
    let (verb, path) = (verb(operation), operation.path());
    let text = format!("{verb} {path}: {}", error.kind);
    match error.kind {
        PatchErrorKind::TestFailed => PatchError::TestFailed(text),
        _ => PatchError::NotApplicable(text),
    }
}

/// What the operations of one patch have added so far.
#[derive(Default)]
struct Growth {
    copied_bytes: usize,
    moved_bytes: usize,
}

impl Growth {
    /// Refuses an operation that would make the document too large or too deep.
    fn admit(
        &mut self,
        document: &Value,
        operation: &PatchOperation,
        moves: bool,
    ) -> Result<(), PatchError> {
        let added = match operation {
            PatchOperation::Add(add) => {
                let added = measure(&add.value);
                self.moved_bytes += if moves { added.bytes } else { 0 };
                added
            }
            PatchOperation::Replace(replace) => measure(&replace.value),
            PatchOperation::Copy(copy) => {
                let source = document.pointer(copy.from.as_str()).map(measure);
                self.copied_bytes += source.unwrap_or_default().bytes;
                source.unwrap_or_default()
            }
            // It comes as an addition.
            PatchOperation::Move(_) => return Ok(()),
            PatchOperation::Remove(_) | PatchOperation::Test(_) => return Ok(()),
        };
        if self.copied_bytes > JSON_PATCH_COPY_BYTES_MAX {
            return Err(PatchError::NotApplicable(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {}, \
                 exceeding the limit {JSON_PATCH_COPY_BYTES_MAX}",
                self.copied_bytes
            )));
        }
        let steps = operation.path().as_str().matches('/').count();
        if self.moved_bytes > JSON_PATCH_MOVE_BYTES_MAX || steps + added.depth > NESTING_MAX {
            return Err(PatchError::NotApplicable(
                "exceeded max depth or size".to_owned(),
            ));
        }
        Ok(())
    }
}

/// About how long a value is as JSON, and how deep it nests.
#[derive(Clone, Copy, Default)]
struct Measure {
    bytes: usize,
    depth: usize,
}

fn measure(value: &Value) -> Measure {
    let mut all = Measure { bytes: 2, depth: 0 };
    let mut add = |key_bytes: usize, value: &Value| {
        let one = measure(value);
        all.bytes += key_bytes + one.bytes + 1;
        all.depth = all.depth.max(one.depth);
    };
    match value {
        Value::Null | Value::Bool(_) => return Measure { bytes: 5, depth: 0 },
        Value::Number(_) => return Measure { bytes: 8, depth: 0 },
        Value::String(text) => {
            return Measure {
                bytes: text.len() + 2,
                depth: 0,
            };
        }
        Value::Array(items) => items.iter().for_each(|item| add(0, item)),
        Value::Object(map) => map
            .iter()
            .for_each(|(key, value)| add(key.len() + 3, value)),
    }
    Measure {
        depth: all.depth + 1,
        ..all
    }
}

fn verb(operation: &PatchOperation) -> &'static str {
    match operation {
        PatchOperation::Add(_) => "add",
        PatchOperation::Remove(_) => "remove",
        PatchOperation::Replace(_) => "replace",
        PatchOperation::Move(_) => "move",
        PatchOperation::Copy(_) => "copy",
        PatchOperation::Test(_) => "test",
    }
}

/// RFC 7386.
pub fn merge_patch(current: &Value, patch: &Value) -> Result<Value, PatchError> {
    object_patch(patch)?;
    let mut document = current.clone();
    json_patch::merge(&mut document, patch);
    Ok(document)
}

/// Kubernetes' own: lists with a merge key merge item by item, and the directives `$patch`,
/// `$retainKeys`, `$setElementOrder/LIST`, `$deleteFromPrimitiveList/LIST` are followed.
pub fn strategic_merge_patch(
    current: &Value,
    patch: &Value,
    type_name: &str,
) -> Result<Value, PatchError> {
    let patch = object_patch(patch)?;
    let mut document = current.as_object().cloned().unwrap_or_default();
    strategic::Merge::new(schema(), type_name).apply(&mut document, patch)?;
    Ok(Value::Object(document))
}

fn object_patch(patch: &Value) -> Result<&serde_json::Map<String, Value>, PatchError> {
    patch.as_object().ok_or_else(|| {
        PatchError::Malformed(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go_kind(patch)
        ))
    })
}

/// A value as Go prints one: `map[a:1 b:[2]]`.
pub fn go_text(value: &Value) -> String {
    strategic::go_text(value)
}

/// What Go calls a JSON value.
pub fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::Null => "null",
    }
}

#[cfg(test)]
mod tests;
