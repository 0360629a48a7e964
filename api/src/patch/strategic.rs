//! Strategic merge: walks document and patch along the schema.
//!
//! Start at [`Merge::apply`]. An object merges field by field; a list merges by its merge key, or
//! as a set of scalars, when its field says so, and is replaced otherwise. New and patched items
//! take the patch's order, items only the server has keep theirs, as upstream interleaves them.
//! What a patch brings where the document has nothing is taken as it is but for objects with a
//! `$patch`; other directives in it stay, and are then unknown fields.

mod lists;

use super::PatchError;
use crate::schema::{Field, Schema, Shape, TypeId, TypeKind};
use serde_json::{Map, Value};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder";
const ORDER_PREFIX: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList";
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList/";

pub(super) struct Merge<'s> {
    schema: &'s Schema,
    root: Option<TypeId>,
}

/// What the schema says about one field of a document.
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

    /// What the schema says of a field that document and patch both have: a type without it is a
    /// fault of the patch.
    fn known(&self, parent: Option<Shape>, name: &str) -> Result<Known<'s>, PatchError> {
        match parent {
            Some(Shape::Type(id)) if self.schema.get(id).kind == TypeKind::Struct => {
                let field = self.schema.field(id, name).ok_or_else(|| {
                    let owner = self.schema.type_name(id);
                    let owner = owner.rsplit('.').next().unwrap_or(owner);
                    PatchError::Failed(format!(
                        "unable to find api field in struct {owner} for the json field {name:?}"
                    ))
                })?;
                Ok(self.known_field(field))
            }
            Some(Shape::Map(value)) => Ok(Known {
                shape: Some(self.schema.shape(value)),
                ..Known::default()
            }),
            _ => Ok(Known::default()),
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
                *document = patch.clone();
                document.remove(PATCH);
                return Ok(());
            }
            Some(Value::String(directive)) if directive == "delete" => {
                document.clear();
                return Ok(());
            }
            Some(other) => return Err(unknown_directive(other, patch)),
        }
        retain_keys(document, patch)?;
        let mut ordered = Vec::new();
        for (key, order) in patch {
            if key.starts_with(ORDER) {
                let list = key.strip_prefix(ORDER_PREFIX).ok_or_else(|| {
                    let text = "invalid patch format of setElementOrder list";
                    PatchError::Malformed(text.to_owned())
                })?;
                self.ordered_list(document, patch, list, order, shape)?;
                ordered.push(list);
            }
        }
        let rest = patch.iter().filter(|(key, _)| {
            *key != RETAIN_KEYS && !key.starts_with(ORDER) && !ordered.contains(&key.as_str())
        });
        // Deletions last, so that what a patch both adds and deletes is gone.
        let (deletions, fields): (Vec<_>, Vec<_>) =
            rest.partition(|(key, _)| key.starts_with(DELETE));
        for (key, value) in fields {
            self.field(document, key, value, shape)?;
        }
        for (key, value) in deletions {
            let list = key.strip_prefix(DELETE_PREFIX).ok_or_else(|| {
                PatchError::Malformed("invalid patch format of primitive list".to_owned())
            })?;
            delete_scalars(document, list, value)?;
        }
        Ok(())
    }

    fn field(
        &self,
        document: &mut Map<String, Value>,
        key: &str,
        value: &Value,
        parent: Option<Shape>,
    ) -> Result<(), PatchError> {
        match (document.get_mut(key), value) {
            (_, Value::Null) => drop(document.remove(key)),
            (Some(Value::Object(current)), Value::Object(patch)) => {
                let known = self.known(parent, key)?;
                if known.replaced {
                    *current = patch.clone();
                } else {
                    self.object(current, patch, known.shape)?;
                }
            }
            (Some(Value::Array(current)), Value::Array(patch)) => {
                let known = self.known(parent, key)?;
                if known.merges {
                    *current = self.list(std::mem::take(current), patch, known)?.items;
                } else {
                    current.clone_from(patch);
                }
            }
            _ => match taken(&without_nulls(value)) {
                Some(taken) => drop(document.insert(key.to_owned(), taken)),
                None => drop(document.remove(key)),
            },
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
        parent: Option<Shape>,
    ) -> Result<(), PatchError> {
        let list = |value: &Value| match value {
            Value::Array(items) => Ok(items.clone()),
            other => Err(wrong_type("[]interface {}", other)),
        };
        let order = list(order)?;
        let current = document.get(name).map(list).transpose()?;
        let patched = patch.get(name).map(list).transpose()?;
        let known = self.known(parent, name)?;
        let key = known.merge_key;
        lists::check_order(patched.as_deref().unwrap_or(&[]), &order, key)?;
        let plain = |items: Vec<Value>, server: &[Value]| lists::Merged {
            items,
            server_order: lists::Order::of(server, key),
        };
        let all = [current.clone(), patched.clone()];
        let merged = match (current, patched) {
            (None, None) => return Ok(()),
            (Some(current), None) => plain(current.clone(), &current),
            (None, Some(patched)) => plain(patched.iter().filter_map(taken).collect(), &[]),
            (Some(current), Some(patched)) if known.merges => {
                self.list(current, &patched, known)?
            }
            (Some(current), Some(patched)) => plain(patched, &current),
        };
        let is_map = lists::element_type(&all.map(Option::unwrap_or_default))? == lists::MAP;
        lists::check_keys(&merged.items, &order, key, is_map)?;
        let order = lists::Order::of(&order, key);
        let ordered = lists::interleave(merged.items, &order, &merged.server_order, key);
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
    let is_stray = |(key, value): (&String, &Value)| {
        let is_directive = key == RETAIN_KEYS || key.starts_with(ORDER) || key.starts_with(DELETE);
        !is_directive && !value.is_null() && !named(key)
    };
    if patch.iter().any(is_stray) {
        return Err(malformed());
    }
    document.retain(|key, _| named(key));
    Ok(())
}

/// `$deleteFromPrimitiveList`: takes the scalars out of a list; all of it when null.
fn delete_scalars(
    document: &mut Map<String, Value>,
    list: &str,
    values: &Value,
) -> Result<(), PatchError> {
    match (document.get_mut(list), values) {
        (_, Value::Null) => drop(document.remove(list)),
        (Some(Value::Array(current)), Value::Array(values)) => {
            if current.is_empty() && values.is_empty() {
                return Ok(());
            }
            lists::element_type(&[current.clone(), values.clone()])?;
            current.retain(|item| !values.contains(item));
        }
        _ => {}
    }
    Ok(())
}

fn unknown_directive(directive: &Value, patch: &Map<String, Value>) -> PatchError {
    let patch = go_text(&Value::Object(patch.clone()));
    PatchError::Failed(format!(
        "unknown patch type: {} in map: {patch}",
        go_string(directive)
    ))
}

/// A value of another type than the one that upstream goes on with.
fn wrong_type(expected: &str, found: &Value) -> PatchError {
    PatchError::Failed(format!(
        "expected a {expected}, but received a {}",
        go_type(found)
    ))
}

/// Go's type of a value.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => lists::MAP,
    }
}

/// What a patch value adds where the document has nothing: all but objects with a `$patch`. `None`
/// when it is such an object itself.
fn taken(value: &Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => {
            let fields = map.iter();
            let fields = fields.filter_map(|(key, value)| Some((key.clone(), taken(value)?)));
            Some(Value::Object(fields.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.iter().filter_map(taken).collect())),
        scalar => Some(scalar.clone()),
    }
}

/// A value without the nulls of its objects.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let fields = map.iter().filter(|field| !field.1.is_null());
            let fields = fields.map(|(key, value)| (key.clone(), without_nulls(value)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        scalar => scalar.clone(),
    }
}

/// Go's `%s`.
fn go_string(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "%!s(<nil>)".into(),
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().map(go_string).collect();
            format!("[{}]", texts.join(" "))
        }
        Value::Object(map) => {
            let texts = map
                .iter()
                .map(|(key, value)| format!("{key}:{}", go_string(value)));
            format!("map[{}]", texts.collect::<Vec<_>>().join(" "))
        }
        other => format!("%!s({}={})", go_type(other), go_text(other)),
    }
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
