//! Strategic merge: walks document and patch along the schema.
//!
//! Start at [`Merge::apply`]. An object merges field by field; a list merges by its merge key, or
//! as a set of scalars, when its field says so, and is replaced otherwise. New and patched items
//! take the patch's order, items only the server has keep theirs, as upstream interleaves them.

mod lists;

use super::PatchError;
use crate::schema::{Field, Schema, Shape, TypeId};
use serde_json::{Map, Value};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ORDER_PREFIX: &str = "$setElementOrder/";
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList/";

pub(super) struct Merge<'s> {
    schema: &'s Schema,
    root: Option<TypeId>,
}

/// What the schema says about one field of a document; all absent where it says nothing.
#[derive(Clone, Copy, Default)]
struct Known<'s> {
    shape: Option<Shape>,
    /// A list of this field merges.
    merges: bool,
    /// An object of this field is replaced.
    replaced: bool,
    /// Empty for a set of scalars.
    merge_key: &'s str,
}

impl<'s> Merge<'s> {
    pub fn new(schema: &'s Schema, type_name: &str) -> Self {
        Self {
            schema,
            root: schema.find(type_name),
        }
    }

    pub fn apply(
        &self,
        document: &mut Map<String, Value>,
        patch: &Map<String, Value>,
    ) -> Result<(), PatchError> {
        self.object(document, patch, self.root.map(Shape::Type))
    }

    fn known(&self, parent: Option<Shape>, name: &str) -> Known<'s> {
        match parent {
            Some(Shape::Type(id)) => match self.schema.field(id, name) {
                Some(field) => self.known_field(field),
                None => Known::default(),
            },
            Some(Shape::Map(value)) => Known {
                shape: Some(self.schema.shape(value)),
                ..Known::default()
            },
            _ => Known::default(),
        }
    }

    fn known_field(&self, field: &Field) -> Known<'s> {
        Known {
            shape: Some(field.shape),
            merges: field.strategy.merge,
            replaced: field.strategy.replace,
            merge_key: self.schema.text(field.merge_key),
        }
    }

    fn item_shape(&self, list: Option<Shape>) -> Option<Shape> {
        match list {
            Some(Shape::List(item)) => Some(self.schema.shape(item)),
            _ => None,
        }
    }

    /// Merges `patch` into `document`, whose shape is `shape`.
    fn object(
        &self,
        document: &mut Map<String, Value>,
        patch: &Map<String, Value>,
        shape: Option<Shape>,
    ) -> Result<(), PatchError> {
        match patch.get(PATCH) {
            None => {}
            Some(Value::String(directive)) if directive == "replace" => {
                *document = without_directives(patch);
                return Ok(());
            }
            Some(Value::String(directive)) if directive == "delete" => {
                document.clear();
                return Ok(());
            }
            Some(other) => return Err(unknown_directive(other, patch)),
        }
        retain_keys(document, patch)?;
        for (key, value) in patch {
            if let Some(list) = key.strip_prefix(ORDER_PREFIX) {
                self.ordered_list(document, patch, list, value, self.known(shape, list))?;
            }
        }
        for (key, value) in patch {
            let handled = key == RETAIN_KEYS
                || key.starts_with(ORDER_PREFIX)
                || patch.contains_key(&format!("{ORDER_PREFIX}{key}"));
            if handled {
                continue;
            }
            if !key.starts_with(DELETE_PREFIX) {
                self.field(document, key, value, self.known(shape, key))?;
            }
        }
        // Last, so that what a patch both adds and deletes is gone.
        for (key, value) in patch {
            if let Some(list) = key.strip_prefix(DELETE_PREFIX) {
                delete_scalars(document, list, value)?;
            }
        }
        Ok(())
    }

    fn field(
        &self,
        document: &mut Map<String, Value>,
        key: &str,
        value: &Value,
        known: Known<'s>,
    ) -> Result<(), PatchError> {
        match (document.get_mut(key), value) {
            (_, Value::Null) => drop(document.remove(key)),
            (Some(Value::Object(current)), Value::Object(patch)) if !known.replaced => {
                self.object(current, patch, known.shape)?;
            }
            (Some(Value::Array(current)), Value::Array(patch)) if known.merges => {
                *current = self.list(std::mem::take(current), patch, known)?.items;
            }
            _ => {
                if let Some(taken) = taken(value) {
                    document.insert(key.to_owned(), taken);
                }
            }
        }
        Ok(())
    }

    /// Merges one list and gives it the order of `$setElementOrder`.
    fn ordered_list(
        &self,
        document: &mut Map<String, Value>,
        patch: &Map<String, Value>,
        name: &str,
        order: &Value,
        known: Known<'s>,
    ) -> Result<(), PatchError> {
        let malformed = || {
            let text = "invalid patch format of $setElementOrder list";
            PatchError::Malformed(text.to_owned())
        };
        let order = order.as_array().ok_or_else(malformed)?;
        let patched = match patch.get(name) {
            None => None,
            Some(Value::Array(items)) => Some(items),
            Some(_) => return Err(malformed()),
        };
        let current = match document.get_mut(name) {
            None => None,
            Some(Value::Array(items)) => Some(std::mem::take(items)),
            Some(_) => return Err(malformed()),
        };
        lists::check_order(patched.map_or(&[], Vec::as_slice), order, known.merge_key)?;
        let plain = |items: Vec<Value>, server: &[Value]| lists::Merged {
            items,
            server_order: lists::Order::of(server, known.merge_key),
        };
        let merged = match (current, patched) {
            (None, None) => return Ok(()),
            (Some(current), None) => plain(current.clone(), &current),
            (Some(current), Some(patched)) if known.merges => self.list(current, patched, known)?,
            (current, Some(patched)) => {
                let items = patched.iter().filter_map(taken).collect();
                plain(items, current.as_deref().unwrap_or(&[]))
            }
        };
        let order = lists::Order::of(order, known.merge_key);
        let ordered =
            lists::interleave(merged.items, &order, &merged.server_order, known.merge_key);
        document.insert(name.to_owned(), Value::Array(ordered));
        Ok(())
    }
}

/// Drops from the document what `$retainKeys` does not name.
fn retain_keys(
    document: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), PatchError> {
    let Some(keys) = patch.get(RETAIN_KEYS) else {
        return Ok(());
    };
    let malformed = || PatchError::Malformed("invalid patch format of retainKeys".to_owned());
    let keys = keys.as_array().ok_or_else(malformed)?;
    let named = |key: &str| keys.iter().any(|one| one.as_str() == Some(key));
    let stray = patch
        .iter()
        .any(|(key, value)| !key.starts_with('$') && !value.is_null() && !named(key));
    if stray {
        return Err(malformed());
    }
    document.retain(|key, _| named(key));
    Ok(())
}

/// `$deleteFromPrimitiveList`: takes the scalars out of a list.
fn delete_scalars(
    document: &mut Map<String, Value>,
    list: &str,
    values: &Value,
) -> Result<(), PatchError> {
    let Value::Array(values) = values else {
        let text = "invalid patch format of primitive list";
        return Err(PatchError::Malformed(text.to_owned()));
    };
    if let Some(Value::Array(current)) = document.get_mut(list) {
        current.retain(|item| !values.contains(item));
    }
    Ok(())
}

fn unknown_directive(directive: &Value, patch: &Map<String, Value>) -> PatchError {
    let patch = go_text(&Value::Object(patch.clone()));
    PatchError::Malformed(format!(
        "unknown patch type: {} in map: {patch}",
        go_text(directive)
    ))
}

/// What a patch value adds where the document has nothing: no directives, no nulls. `None` when
/// it says that there is to be nothing.
fn taken(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(map) => match map.get(PATCH).and_then(Value::as_str) {
            Some("delete") => None,
            _ => Some(Value::Object(without_directives(map))),
        },
        Value::Array(items) => Some(Value::Array(items.iter().filter_map(taken).collect())),
        scalar => Some(scalar.clone()),
    }
}

fn without_directives(map: &Map<String, Value>) -> Map<String, Value> {
    let fields = map.iter().filter(|(key, _)| {
        *key != PATCH
            && *key != RETAIN_KEYS
            && !key.starts_with(ORDER_PREFIX)
            && !key.starts_with(DELETE_PREFIX)
    });
    fields
        .filter_map(|(key, value)| Some((key.clone(), taken(value)?)))
        .collect()
}

/// Go's `%v`.
pub(crate) fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().map(go_text).collect();
            format!("[{}]", texts.join(" "))
        }
        Value::Object(map) => {
            let texts = map
                .iter()
                .map(|(key, value)| format!("{key}:{}", go_text(value)));
            format!("map[{}]", texts.collect::<Vec<_>>().join(" "))
        }
        other => other.to_string(),
    }
}
