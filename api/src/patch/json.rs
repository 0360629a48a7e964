//! RFC 6902 as upstream's library has it, which takes more than the RFC does: indices with a sign
//! or leading zeros, negative ones counted from the end, paths whatever they begin with, and
//! `replace` of a key that is not there.
//!
//! Each operation is brought into the RFC's form by the document as it stands, and then applied.

use super::PatchError;
use json_patch::jsonptr::PointerBuf;
use json_patch::{
    AddOperation, CopyOperation, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation,
};
use serde_json::{Map, Value};

/// The operations of a patch as they were written, or what makes it no patch.
pub fn operations(patch: &[u8]) -> Result<Vec<Map<String, Value>>, PatchError> {
    let malformed = |why: &str| PatchError::Malformed(format!("error decoding patch: {why}"));
    let document: Value = serde_json::from_slice(patch)
        .map_err(|error| malformed(&crate::decode::syntax_text(&error, patch)))?;
    let Value::Array(items) = document else {
        let text = format!(
            "json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp",
            super::go_kind(&document)
        );
        return Err(malformed(&text));
    };
    let mut operations = Vec::with_capacity(items.len());
    for item in items {
        let operation = match item {
            Value::Object(operation) => operation,
            Value::Null => Map::new(),
            other => {
                let text = format!(
                    "json: cannot unmarshal {} into Go value of type handlers.jsonPatchOp",
                    super::go_kind(&other)
                );
                return Err(malformed(&text));
            }
        };
        for name in ["op", "path", "from"] {
            let found = operation.get(name).unwrap_or(&Value::Null);
            if !found.is_string() && !found.is_null() {
                let text = format!(
                    "json: cannot unmarshal {} into Go struct field jsonPatchOp.{name} of type \
                     string",
                    super::go_kind(found)
                );
                return Err(malformed(&text));
            }
        }
        operations.push(operation);
    }
    Ok(operations)
}

/// An operation in the RFC's form; `None` for one that changes nothing. What is moved is taken out
/// of the document, and added by the operation.
pub fn canonical(
    document: &mut Value,
    operation: &mut Map<String, Value>,
) -> Result<Option<PatchOperation>, PatchError> {
    let value = operation.remove("value").unwrap_or_default();
    let text = |name: &str| operation.get(name).and_then(Value::as_str).unwrap_or("");
    let (verb, path) = (text("op"), text("path"));
    // An operation without a path is none on the whole document.
    let is_whole = operation.get("path").is_some_and(|path| path == "");
    Ok(Some(match verb {
        "replace" if is_whole => {
            if !value.is_object() && !value.is_array() {
                let text = "replace operation value must be object or array";
                return Err(PatchError::NotApplicable(text.to_owned()));
            }
            let path = PointerBuf::new();
            PatchOperation::Replace(ReplaceOperation { path, value })
        }
        "test" if is_whole => {
            let path = PointerBuf::new();
            PatchOperation::Test(TestOperation { path, value })
        }
        "add" => added(Place::find(document, path, true)?, value)?,
        "remove" => {
            let path = Place::find(document, path, false)?.there()?;
            PatchOperation::Remove(RemoveOperation { path })
        }
        "replace" => {
            let place = Place::find(document, path, false)?;
            if !place.is_there {
                return added(place, value).map(Some);
            }
            let path = place.there()?;
            PatchOperation::Replace(ReplaceOperation { path, value })
        }
        "test" => {
            let place = Place::find(document, path, false)?;
            if !place.is_there && value.is_null() {
                return Ok(None);
            }
            let path = place.there().map_err(|error| match error {
                PatchError::NotApplicable(text) => PatchError::TestFailed(text),
                other => other,
            })?;
            PatchOperation::Test(TestOperation { path, value })
        }
        "move" => {
            let moved = Place::find(document, text("from"), false)?.take(document)?;
            added(Place::find(document, path, true)?, moved)?
        }
        "copy" => {
            let source = Place::find(document, text("from"), false)?;
            let place = Place::find(document, path, true)?;
            if !source.is_there {
                return added(place, Value::Null).map(Some);
            }
            let (from, path) = (source.there()?, place.pointer()?);
            PatchOperation::Copy(CopyOperation { from, path })
        }
        _ => {
            return Err(PatchError::NotApplicable(format!(
                "Unexpected kind: {verb}"
            )));
        }
    }))
}

fn added(place: Place, value: Value) -> Result<PatchOperation, PatchError> {
    let path = place.pointer()?;
    Ok(PatchOperation::Add(AddOperation { path, value }))
}

/// Where a path leads.
struct Place {
    /// In the RFC's form.
    pointer: String,
    is_there: bool,
}

impl Place {
    fn find(document: &Value, path: &str, adds: bool) -> Result<Self, PatchError> {
        let nowhere = || PatchError::NotApplicable(format!("doc is missing path: {path:?}"));
        // Whatever stands before the first slash does not count.
        let (_, steps) = path.split_once('/').ok_or_else(nowhere)?;
        let steps: Vec<String> = steps.split('/').map(decoded).collect();
        let (last, before) = steps.split_last().ok_or_else(nowhere)?;
        let mut container = document;
        let mut pointer = String::new();
        for step in before {
            let (key, next) = enter(container, step).ok_or_else(nowhere)?;
            push(&mut pointer, &key);
            container = next;
        }
        let is_there = match container {
            Value::Object(map) => {
                push(&mut pointer, last);
                map.contains_key(last)
            }
            Value::Array(items) if adds && last == "-" => {
                push(&mut pointer, &items.len().to_string());
                false
            }
            Value::Array(items) => {
                let room = items.len() + usize::from(adds);
                let index = index(last, room).ok_or_else(nowhere)?;
                push(&mut pointer, &index.to_string());
                index < items.len()
            }
            _ => return Err(nowhere()),
        };
        Ok(Self { pointer, is_there })
    }

    fn pointer(self) -> Result<PointerBuf, PatchError> {
        let parsed = PointerBuf::parse(self.pointer);
        parsed.map_err(|error| PatchError::NotApplicable(error.to_string()))
    }

    /// The pointer of what must be there.
    fn there(self) -> Result<PointerBuf, PatchError> {
        if !self.is_there {
            let text = format!("missing value at {}", self.pointer);
            return Err(PatchError::NotApplicable(text));
        }
        self.pointer()
    }

    /// What is here, taken out of the document.
    fn take(&self, document: &mut Value) -> Result<Value, PatchError> {
        let nothing = || PatchError::NotApplicable(format!("missing value at {}", self.pointer));
        let (container, last) = self.pointer.rsplit_once('/').ok_or_else(nothing)?;
        match document.pointer_mut(container).ok_or_else(nothing)? {
            Value::Object(map) => map.remove(&decoded(last)).ok_or_else(nothing),
            Value::Array(items) => {
                let index = index(last, items.len()).ok_or_else(nothing)?;
                Ok(items.remove(index))
            }
            _ => Err(nothing()),
        }
    }
}

fn enter<'v>(container: &'v Value, step: &str) -> Option<(String, &'v Value)> {
    match container {
        Value::Object(map) => Some((step.to_owned(), map.get(step)?)),
        Value::Array(items) => {
            let index = index(step, items.len())?;
            Some((index.to_string(), &items[index]))
        }
        _ => None,
    }
}

/// As Go reads a number; one below zero counts from the end of what there is room for.
fn index(text: &str, room: usize) -> Option<usize> {
    let number: i64 = text.parse().ok()?;
    let index = if number < 0 {
        number.checked_add(i64::try_from(room).ok()?)?
    } else {
        number
    };
    usize::try_from(index).ok().filter(|index| *index < room)
}

fn decoded(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

fn push(pointer: &mut String, key: &str) {
    pointer.push('/');
    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
}
