//! What an update keeps of the old object: the pieces that the kinds' strategies are made of.

use crate::object::Object;
use crate::resource::Part;
use serde_json::Value;

/// Takes the value under a path, or its absence, from `old`.
pub fn keep(new: &mut Object, old: &Object, path: &[&str]) {
    put(new, path, old.get(path).cloned());
}

pub fn put(object: &mut Object, path: &[&str], value: Option<Value>) {
    match value {
        Some(value) => object.set(path, value),
        None => drop(object.remove(path)),
    }
}

/// Takes everything from `old`, except what a later step needs of the new metadata.
pub fn keep_all(new: &mut Object, old: &Object) {
    let metadata = ["resourceVersion", "managedFields"];
    let kept = metadata.map(|name| new.get(&["metadata", name]).cloned());
    *new = old.clone();
    for (name, value) in metadata.iter().zip(kept) {
        put(new, &["metadata", name], value);
    }
}

/// The main resource keeps the old status; the status keeps the old `spec`, and lets metadata
/// through.
pub fn status_keeps_spec(new: &mut Object, old: &Object, part: Part<'_>) {
    match part {
        Part::Status => keep(new, old, &["spec"]),
        Part::Main | Part::Other(_) => keep(new, old, &["status"]),
    }
}
