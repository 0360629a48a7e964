//! Lists that merge: by merge key, or as sets of scalars.

use super::{Known, Merge, PATCH, go_text, taken, unknown_directive};
use crate::patch::PatchError;
use serde_json::Value;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// What identifies an item: its merge key's value, or the scalar itself.
fn identity(item: &Value, merge_key: &str) -> Option<String> {
    let value = if merge_key.is_empty() {
        item
    } else {
        item.get(merge_key)?
    };
    match value {
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

/// Places in a list by identity.
pub(super) struct Order(HashMap<String, usize>);

impl Order {
    pub fn of(items: &[Value], merge_key: &str) -> Self {
        let mut places = HashMap::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            if let Some(id) = identity(item, merge_key) {
                places.entry(id).or_insert(place);
            }
        }
        Self(places)
    }

    fn place(&self, item: &Value, merge_key: &str) -> Option<usize> {
        self.0.get(&identity(item, merge_key)?).copied()
    }
}

/// Gives the items that `patch` names the patch's order and the rest the server's, then weaves
/// both: an item of the server's stays before a patched one where it stood before it.
pub(super) fn interleave(
    items: Vec<Value>,
    patch: &Order,
    server: &Order,
    merge_key: &str,
) -> Vec<Value> {
    let size = items.len();
    let placed = items.into_iter().map(|item| {
        let in_patch = patch.place(&item, merge_key);
        (in_patch, server.place(&item, merge_key), item)
    });
    let (mut patched, mut rest): (Vec<_>, Vec<_>) = placed.partition(|one| one.0.is_some());
    patched.sort_by_key(|one| one.0);
    // The server's list is its own order but for what it does not know, which goes last.
    rest.sort_by_key(|one| one.1.unwrap_or(usize::MAX));
    let mut merged = Vec::with_capacity(size);
    let mut patched = patched.into_iter().peekable();
    let mut rest = rest.into_iter().peekable();
    loop {
        let rest_first = match (rest.peek(), patched.peek()) {
            (Some(left), Some(right)) => match (left.1, right.1) {
                (Some(left), Some(right)) => left < right,
                _ => false,
            },
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return merged,
        };
        let next = if rest_first {
            rest.next()
        } else {
            patched.next()
        };
        merged.extend(next.map(|one| one.2));
    }
}

impl<'s> Merge<'s> {
    pub(super) fn list(
        &self,
        current: Vec<Value>,
        patch: &[Value],
        known: Known<'s>,
    ) -> Result<Vec<Value>, PatchError> {
        if current.iter().chain(patch).any(Value::is_array) {
            return Err(PatchError::NotApplicable(
                "lists of lists are not supported".to_owned(),
            ));
        }
        if current.iter().chain(patch).any(Value::is_object) {
            self.list_of_objects(current, patch, known)
        } else {
            Ok(list_of_scalars(current, patch))
        }
    }

    fn list_of_objects(
        &self,
        mut current: Vec<Value>,
        patch: &[Value],
        known: Known<'s>,
    ) -> Result<Vec<Value>, PatchError> {
        let key = known.merge_key;
        let (mut changes, mut replace) = (Vec::new(), false);
        for item in patch {
            match item.get(PATCH) {
                None => changes.push(item),
                Some(Value::String(directive)) if directive == "replace" => replace = true,
                Some(Value::String(directive)) if directive == "delete" => {
                    let gone = identified(item, key)?;
                    current.retain(|one| identity(one, key).as_ref() != Some(&gone));
                }
                Some(other) => {
                    return Err(unknown_directive(
                        other,
                        item.as_object().unwrap_or(&Default::default()),
                    ));
                }
            }
        }
        if replace {
            return Ok(changes.into_iter().filter_map(taken).collect());
        }
        let server_order = Order::of(&current, key);
        let mut places = Order::of(&current, key).0;
        let mut patch_order = HashMap::new();
        for (index, change) in changes.into_iter().enumerate() {
            let id = identified(change, key)?;
            patch_order.entry(id.clone()).or_insert(index);
            match places.entry(id) {
                Entry::Occupied(place) => match (&mut current[*place.get()], change) {
                    (Value::Object(old), Value::Object(new)) => {
                        self.object(old, new, self.item_shape(known.shape))?;
                    }
                    (old, _) => *old = change.clone(),
                },
                Entry::Vacant(place) => {
                    if let Some(added) = taken(change) {
                        place.insert(current.len());
                        current.push(added);
                    }
                }
            }
        }
        Ok(interleave(current, &Order(patch_order), &server_order, key))
    }
}

fn list_of_scalars(current: Vec<Value>, patch: &[Value]) -> Vec<Value> {
    let server_order = Order::of(&current, "");
    let patch_order = Order::of(patch, "");
    let mut seen = std::collections::HashSet::new();
    let both = current.into_iter().chain(patch.iter().cloned());
    let merged = both.filter(|item| seen.insert(item.to_string())).collect();
    interleave(merged, &patch_order, &server_order, "")
}

fn identified(item: &Value, merge_key: &str) -> Result<String, PatchError> {
    identity(item, merge_key).ok_or_else(|| {
        let text = format!(
            "map: {} does not contain declared merge key: {merge_key}",
            go_text(item)
        );
        PatchError::NotApplicable(text)
    })
}
