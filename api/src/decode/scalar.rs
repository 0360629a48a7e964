//! Scalars: which texts and numbers a type takes, and how it words its refusal.

use super::go;
use super::walk::Seed;
use crate::quantity::QuantityError;
use crate::schema::{Schema, Shape, TypeKind};
use serde_json::{Map, Number, Value};

impl Seed<'_, '_, '_> {
    /// `json: cannot unmarshal {found} into Go struct field PodSpec.spec.x of type string`.
    pub fn mismatch(self, found: &str) -> Option<Value> {
        if self.kind() == Some(TypeKind::Quantity) {
            // Its decoder takes any value for the text of a quantity.
            self.refuse(QuantityError::Format.to_string());
            return None;
        }
        let own_decoder = matches!(
            self.kind(),
            Some(TypeKind::IntOrString | TypeKind::Time | TypeKind::MicroTime)
        );
        let walk = self.walk;
        let wanted = match self.go_type {
            "" => go::type_name(walk.schema, self.shape),
            named => named.to_owned(),
        };
        let Some(id) = self.here.type_id else {
            let wanted = go::TYPE_META;
            walk.no_object = Some(format!(
                "json: cannot unmarshal {found} into Go value of type {wanted}"
            ));
            return None;
        };
        if walk.converts && !own_decoder {
            let error = conversion(walk.schema, self.shape, found, &wanted);
            walk.type_error.get_or_insert(error);
            return None;
        }
        let slot = if own_decoder {
            &mut walk.fatal
        } else {
            &mut walk.type_error
        };
        if slot.is_none() {
            let name = walk.schema.type_name(id);
            let name = name.rsplit('.').next().unwrap_or(name);
            let mut path = String::new();
            self.here.write_fields(walk.schema, &mut path);
            *slot = Some(format!(
                "json: cannot unmarshal {found} into Go struct field {name}.{path} of type {wanted}"
            ));
        }
        None
    }

    /// A text that its type's own decoder refuses.
    fn refuse(self, error: String) {
        self.walk.fatal.get_or_insert(error);
    }

    pub fn number(self, number: Number) -> Option<Value> {
        let fits = |low: i64, high: i64| number.as_i64().is_some_and(|n| n >= low && n <= high);
        let int32 = || fits(i64::from(i32::MIN), i64::from(i32::MAX));
        let ok = match (self.shape, self.kind()) {
            (Shape::Int32, _) | (_, Some(TypeKind::IntOrString)) => int32(),
            (Shape::Int64, _) => fits(i64::MIN, i64::MAX),
            (Shape::Double, _) => true,
            (_, Some(TypeKind::Quantity)) => return self.quantity(&number.to_string()),
            _ => return self.mismatch("number"),
        };
        if ok {
            Some(Value::Number(number))
        } else {
            self.mismatch(&format!("number {number}"))
        }
    }

    pub fn quantity(self, text: &str) -> Option<Value> {
        match crate::quantity::Quantity::parse(text.trim()) {
            Ok(quantity) => Some(Value::String(quantity.to_string())),
            Err(error) => {
                self.refuse(error.to_string());
                None
            }
        }
    }

    /// `None` for the text gives the text itself.
    pub fn text(self, text: &str) -> Option<Option<String>> {
        let checked = match (self.shape, self.kind()) {
            (Shape::String, _) | (_, Some(TypeKind::IntOrString)) => return Some(None),
            (Shape::Bytes, _) => go::base64(text),
            (_, Some(TypeKind::Time)) => go::time(text).map(Some),
            (_, Some(TypeKind::MicroTime)) => go::micro_time(text).map(Some),
            (_, Some(TypeKind::Quantity)) => {
                return match self.quantity(text) {
                    Some(Value::String(canonical)) => Some(Some(canonical)),
                    _ => None,
                };
            }
            _ => {
                self.mismatch("string");
                return None;
            }
        };
        match checked {
            Ok(canonical) => Some(canonical),
            Err(error) if self.shape == Shape::Bytes => {
                self.walk.type_error.get_or_insert(error);
                None
            }
            Err(error) => {
                self.refuse(error);
                None
            }
        }
    }
}

/// What the converter says of a value that its field cannot take.
fn conversion(schema: &Schema, shape: Shape, found: &str, wanted: &str) -> String {
    let from = match found {
        "array" => "slice",
        "object" => "map",
        "bool" | "string" => found,
        // `number`, or that and which one.
        number if number.contains('.') => "float64",
        _ => "int64",
    };
    let simple = match shape {
        Shape::Map(_) => return format!("cannot restore map from {from}"),
        Shape::List(_) | Shape::Bytes => return format!("cannot restore slice from {from}"),
        Shape::Type(id) if schema.get(id).kind == TypeKind::Struct => {
            return format!("cannot restore struct from: {from}");
        }
        Shape::String if from == "int64" => return format!("cannot convert int64 to {wanted}"),
        Shape::Int32 | Shape::Int64 if matches!(from, "float64" | "int64") => {
            return format!("cannot convert {from} to {wanted}");
        }
        Shape::String => "string",
        Shape::Int32 => "int32",
        Shape::Int64 => "int64",
        Shape::Double => "float64",
        Shape::Bool => "bool",
        _ => wanted,
    };
    format!("unrecognized type: {simple}")
}

/// A scalar that is Go's zero value.
pub(super) fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        _ => false,
    }
}

/// What Go leaves where a list or map holds a null.
pub(super) fn zero(schema: &Schema, shape: Shape) -> Value {
    match shape {
        Shape::String | Shape::Bytes => "".into(),
        Shape::Int32 | Shape::Int64 => 0.into(),
        Shape::Double => 0.0.into(),
        Shape::Bool => false.into(),
        Shape::Any | Shape::List(_) | Shape::Map(_) => Value::Null,
        Shape::Type(id) => match schema.get(id).kind {
            TypeKind::Struct => Value::Object(Map::new()),
            TypeKind::Quantity => "0".into(),
            TypeKind::IntOrString => 0.into(),
            TypeKind::Time | TypeKind::MicroTime | TypeKind::Raw | TypeKind::Any => Value::Null,
        },
    }
}
