//! Fields that upstream writes though nobody set them: Go has a value in a field that is no
//! pointer, and leaves out only what its type says to leave out.
//!
//! Runs after the defaults of a kind, so a default is never taken for unset. An empty list or map
//! does not survive upstream's storage: it is null where the field is required, and gone elsewhere.

use crate::object::Object;
use crate::schema::{Field, Schema, Shape, TypeId, TypeKind, schema};
use serde_json::{Map, Value};

/// Completes an object of the named type.
pub fn complete(type_name: &str, object: &mut Object) {
    if let Some(id) = schema().find(type_name) {
        fields(schema(), id, object.root_mut());
    }
}

fn fields(schema: &Schema, id: TypeId, map: &mut Map<String, Value>) {
    for field in schema.fields(id) {
        let name = schema.text(field.name);
        match map.get_mut(name) {
            // A null that the defaults put there stays.
            None | Some(Value::Null) => {
                if let Some(zero) = zero(schema, field) {
                    map.insert(name.to_owned(), zero);
                }
            }
            Some(value) if is_empty_list(field.shape, value) => {
                if field.required {
                    *value = Value::Null;
                } else {
                    map.remove(name);
                }
            }
            Some(value) => inside(schema, field.shape, value),
        }
    }
}

fn is_empty_list(shape: Shape, value: &Value) -> bool {
    match (shape, value) {
        (Shape::List(_), Value::Array(items)) => items.is_empty(),
        (Shape::Map(_), Value::Object(entries)) => entries.is_empty(),
        _ => false,
    }
}

fn inside(schema: &Schema, shape: Shape, value: &mut Value) {
    match (shape, value) {
        (Shape::Type(id), Value::Object(map)) if schema.get(id).kind == TypeKind::Struct => {
            fields(schema, id, map);
        }
        (Shape::List(item), Value::Array(items)) => {
            for value in items {
                inside(schema, schema.shape(item), value);
            }
        }
        (Shape::Map(item), Value::Object(entries)) => {
            for value in entries.values_mut() {
                inside(schema, schema.shape(item), value);
            }
        }
        _ => {}
    }
}

/// What Go has in a field that is not set; `None` where it writes nothing.
fn zero(schema: &Schema, field: &Field) -> Option<Value> {
    let is_said = !schema.text(field.default).is_empty();
    match field.shape {
        _ if field.shows_null => Some(Value::Null),
        Shape::Type(id) if schema.text(field.default) == "{}" => {
            let mut map = Map::new();
            fields(schema, id, &mut map);
            Some(Value::Object(map))
        }
        Shape::List(_) | Shape::Map(_) if field.required => Some(Value::Null),
        Shape::String if field.required && is_said => Some("".into()),
        Shape::Int32 | Shape::Int64 if field.required && is_said => Some(0.into()),
        Shape::Bool if field.required && is_said => Some(false.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
