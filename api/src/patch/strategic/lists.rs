//! Lists that merge: by merge key, or as sets of scalars.

use super::{Known, Merge, PATCH, go_text, go_type, unknown_directive, wrong_type};
use crate::patch::PatchError;
use serde_json::Value;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// What identifies an item: its merge key's value, or the scalar itself.
fn identity(item: &Value, merge_key: &str) -> Option<String> {
    let value = if merge_key.is_empty() {
        item
    } else {
        item.get(merge_key)?
    };
    Some(value.to_string())
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

    /// The order that upstream goes by once it has deleted and added items in place: what is added
    /// takes the slots that deleted items left, so those few count as known to the server.
    fn with_added(mut self, slots: usize) -> Self {
        self.0.retain(|_, place| *place < slots);
        self
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

/// A merged list, in order.
pub(super) struct Merged {
    pub items: Vec<Value>,
    /// The order of the server's list for `$setElementOrder`, see [`Order::with_added`].
    pub server_order: Order,
}

/// Go's type of the items that merge by key.
pub(super) const MAP: &str = "map[string]interface {}";

/// The one type that the items of both lists have.
pub(super) fn element_type(lists: &[Vec<Value>; 2]) -> Result<&'static str, PatchError> {
    let mut types = lists.iter().flatten().map(go_type);
    let Some(first) = types.next() else {
        let text = "no elements in any of the given slices";
        return Err(PatchError::Failed(text.to_owned()));
    };
    if first == "[]interface {}" {
        let text = "lists of lists are not supported";
        return Err(PatchError::NotApplicable(text.to_owned()));
    }
    if types.any(|other| other != first) {
        let lists = go_text(&Value::Array(
            lists.iter().cloned().map(Value::Array).collect(),
        ));
        let text = format!("list element types are not identical: {lists}");
        return Err(PatchError::Failed(text));
    }
    Ok(first)
}

/// Refuses items without their key before they are put in order.
pub(super) fn check_keys(
    items: &[Value],
    order: &[Value],
    merge_key: &str,
    is_map: bool,
) -> Result<(), PatchError> {
    if merge_key.is_empty() && !is_map {
        return Ok(());
    }
    let mut all = items.iter().chain(order);
    all.try_for_each(|item| identified(item, merge_key).map(drop))
}

impl<'s> Merge<'s> {
    pub(super) fn list(
        &self,
        current: Vec<Value>,
        patch: &[Value],
        known: Known<'s>,
    ) -> Result<Merged, PatchError> {
        if current.is_empty() && patch.is_empty() {
            let server_order = Order::of(&[], "");
            return Ok(Merged {
                items: current,
                server_order,
            });
        }
        let lists = [current, patch.to_vec()];
        let element_type = element_type(&lists)?;
        let [current, _] = lists;
        if element_type == MAP {
            if known.merge_key.is_empty() {
                let text = "cannot merge lists without merge key for a field";
                return Err(PatchError::Failed(text.to_owned()));
            }
            return self.list_of_objects(current, patch, known);
        }
        match current.first().or(patch.first()) {
            Some(item) if !known.merge_key.is_empty() => Err(wrong_type(MAP, item)),
            _ => Ok(list_of_scalars(current, patch)),
        }
    }

    fn list_of_objects(
        &self,
        mut current: Vec<Value>,
        patch: &[Value],
        known: Known<'s>,
    ) -> Result<Merged, PatchError> {
        let key = known.merge_key;
        let size_before = current.len();
        let (changes, replace) = follow_directives(&mut current, patch, key)?;
        let mut places = Order::of(&current, key);
        if replace {
            let items: Vec<Value> = changes.into_iter().cloned().collect();
            items
                .iter()
                .try_for_each(|item| identified(item, key).map(drop))?;
            return Ok(Merged {
                items,
                server_order: places,
            });
        }
        let survivors = current.len();
        let server_order = Order::of(&current, key);
        let mut patch_order = HashMap::new();
        for (index, change) in changes.into_iter().enumerate() {
            let id = identified(change, key)?;
            patch_order.entry(id.clone()).or_insert(index);
            match places.0.entry(id) {
                Entry::Occupied(place) => match (&mut current[*place.get()], change) {
                    (Value::Object(old), Value::Object(new)) => {
                        self.object(old, new, self.item_shape(known.shape))?;
                    }
                    (old, _) => *old = change.clone(),
                },
                Entry::Vacant(place) => {
                    place.insert(current.len());
                    current.push(change.clone());
                }
            }
        }
        let items = interleave(current, &Order(patch_order), &server_order, key);
        let deleted = size_before - survivors;
        Ok(Merged {
            items,
            server_order: places.with_added(survivors + deleted),
        })
    }
}

/// Takes out of `current` what the patch deletes. What is left of the patch, and whether that
/// replaces the list.
fn follow_directives<'p>(
    current: &mut Vec<Value>,
    patch: &'p [Value],
    merge_key: &str,
) -> Result<(Vec<&'p Value>, bool), PatchError> {
    let (mut changes, mut replace, mut gone) = (Vec::new(), false, HashSet::new());
    for item in patch {
        match item.get(PATCH) {
            None => changes.push(item),
            Some(Value::String(directive)) if directive == "replace" => replace = true,
            Some(Value::String(directive)) if directive == "delete" => {
                gone.insert(identified(item, merge_key)?);
            }
            Some(Value::String(directive)) if directive == "merge" => {
                let text = "merging lists cannot yet be specified in the patch";
                return Err(PatchError::Failed(text.to_owned()));
            }
            Some(other) => {
                let item = item.as_object().cloned().unwrap_or_default();
                return Err(unknown_directive(other, &item));
            }
        }
    }
    if !gone.is_empty() {
        current.retain(|item| identity(item, merge_key).is_none_or(|id| !gone.contains(&id)));
    }
    Ok((changes, replace))
}

fn list_of_scalars(current: Vec<Value>, patch: &[Value]) -> Merged {
    let server_order = Order::of(&current, "");
    let patch_order = Order::of(patch, "");
    let mut seen = HashSet::new();
    let both = current.into_iter().chain(patch.iter().cloned());
    let merged = both.filter(|item| seen.insert(item.to_string())).collect();
    let items = interleave(merged, &patch_order, &server_order, "");
    Merged {
        items,
        server_order,
    }
}

/// Refuses a patch whose items are not in the order that its `$setElementOrder` says.
pub(super) fn check_order(
    patch: &[Value],
    order: &[Value],
    merge_key: &str,
) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    if !merge_key.is_empty()
        && let Some(item) = patch.iter().find(|item| !item.is_object())
    {
        return Err(wrong_type(MAP, item));
    }
    let is_deletion = |item: &Value| item.get(PATCH).is_some_and(|one| one == "delete");
    let kept = patch
        .iter()
        .filter(|item| merge_key.is_empty() || !is_deletion(item));
    let (mut kept, mut ordered) = (kept.peekable(), order.iter().peekable());
    while let (Some(item), Some(next)) = (kept.peek(), ordered.peek()) {
        if item.get(PATCH).is_some() {
            kept.next();
            continue;
        }
        let is_same = if merge_key.is_empty() {
            item == next
        } else {
            identified(item, merge_key)? == identified(next, merge_key)?
        };
        if is_same {
            kept.next();
        }
        ordered.next();
    }
    if kept.peek().is_none() {
        return Ok(());
    }
    let show = |items: &[Value]| go_text(&Value::Array(items.to_vec()));
    Err(PatchError::Failed(format!(
        "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
        show(patch),
        show(order)
    )))
}

/// The identity of an item that must have one.
fn identified(item: &Value, merge_key: &str) -> Result<String, PatchError> {
    if !item.is_object() {
        return Err(wrong_type(MAP, item));
    }
    identity(item, merge_key).ok_or_else(|| {
        let text = format!(
            "map: {} does not contain declared merge key: {merge_key}",
            go_text(item)
        );
        PatchError::Failed(text)
    })
}
