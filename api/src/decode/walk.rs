//! One pass from any deserializer to a [`Value`] that has the shape of a type.
//!
//! The first ill-typed value is kept as the error and the pass goes on, since a syntax error
//! further down comes first, as in Go. A null is absent; in a list or map it is the zero value.

use super::place::{Here, Step};
use super::scalar::{is_zero, zero};
use super::{DecodeError, FieldValidation, go};
use crate::schema::{Schema, Shape, TypeId, TypeKind};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// As upstream: enough to mend a file by, and a hostile body cannot make the answer grow.
const STRICT_ERRORS_MAX: usize = 100;

/// Fields in which an empty list says more than none: it asks to forget who manages what, and it is
/// not filled in where the behaviour of an autoscaler is.
const KEPT_EMPTY: [&str; 2] = ["managedFields", "policies"];

/// What one pass gathers.
pub(super) struct Walk<'s> {
    pub schema: &'s Schema,
    mode: FieldValidation,
    strict: Vec<String>,
    /// The first value that its field cannot take.
    pub type_error: Option<String>,
    /// The first text that a type's own decoder refuses. Go stops there, so it comes first.
    pub fatal: Option<String>,
    pub no_object: Option<String>,
    /// Refusals are in the words of upstream's converter of documents, not of its JSON decoder.
    pub converts: bool,
}

impl<'s> Walk<'s> {
    pub fn new(schema: &'s Schema, mode: FieldValidation) -> Self {
        Self {
            schema,
            mode,
            strict: Vec::new(),
            type_error: None,
            fatal: None,
            no_object: None,
            converts: false,
        }
    }

    /// The warnings, or what makes the document unacceptable.
    pub fn finish(self) -> Result<Vec<String>, DecodeError> {
        if let Some(error) = self.no_object {
            return Err(DecodeError::Syntax(error));
        }
        match (self.fatal.or(self.type_error), self.mode) {
            (Some(error), _) => Err(DecodeError::Type(error)),
            (None, FieldValidation::Strict) if !self.strict.is_empty() => {
                Err(DecodeError::Strict(self.strict))
            }
            _ => Ok(self.strict),
        }
    }

    fn report(&mut self, what: &str, here: &Here<'_>, name: &str) {
        if self.mode == FieldValidation::Ignore || self.strict.len() >= STRICT_ERRORS_MAX {
            return;
        }
        let mut path = String::new();
        here.write(&mut path);
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
        let error = format!("{what} field {}", go::quoted(&path));
        if !self.strict.contains(&error) {
            self.strict.push(error);
        }
    }
}

/// Decodes one value of one shape; `None` for null and for what cannot be taken.
pub(super) struct Seed<'w, 's, 'p> {
    pub walk: &'w mut Walk<'s>,
    pub shape: Shape,
    pub here: Here<'p>,
    /// Keep an empty list or map: Go writes those of required fields alone.
    keep_empty: bool,
    /// Go's name for the type, empty when the shape tells it.
    pub go_type: &'s str,
}

impl<'w, 's> Seed<'w, 's, 'static> {
    pub fn root(walk: &'w mut Walk<'s>, type_name: &str) -> Result<Self, DecodeError> {
        let id = walk
            .schema
            .find(type_name)
            .ok_or_else(|| DecodeError::UnknownType(type_name.to_owned()))?;
        let here = Here {
            parent: None,
            step: Step::Root,
            type_id: None,
        };
        Ok(Self {
            walk,
            shape: Shape::Type(id),
            here,
            keep_empty: true,
            go_type: "",
        })
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_, '_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        match self.kind() {
            None if self.shape == Shape::Any => {
                serde::Deserialize::deserialize(deserializer).map(Some)
            }
            Some(TypeKind::Any) => {
                let value: Value = serde::Deserialize::deserialize(deserializer)?;
                Ok(if value.is_null() { None } else { Some(value) })
            }
            Some(TypeKind::Raw) => {
                let value: Value = serde::Deserialize::deserialize(deserializer)?;
                Ok(if value.is_null() { None } else { Some(value) })
            }
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl Seed<'_, '_, '_> {
    pub fn kind(&self) -> Option<TypeKind> {
        match self.shape {
            Shape::Type(id) => Some(self.walk.schema.get(id).kind),
            _ => None,
        }
    }

    fn list<'de, A: SeqAccess<'de>>(
        self,
        item: Shape,
        mut access: A,
    ) -> Result<Option<Value>, A::Error> {
        let mut items = Vec::new();
        loop {
            let here = Here {
                parent: Some(&self.here),
                step: Step::Index(items.len()),
                type_id: self.here.type_id,
            };
            let seed = Seed {
                walk: &mut *self.walk,
                shape: item,
                here,
                keep_empty: true,
                go_type: self.go_type.strip_prefix("[]").unwrap_or(""),
            };
            let Some(value) = access.next_element_seed(seed)? else {
                break;
            };
            items.push(value.unwrap_or_else(|| zero(self.walk.schema, item)));
        }
        Ok(if items.is_empty() && !self.keep_empty {
            None
        } else {
            Some(Value::Array(items))
        })
    }

    /// Bytes as a list of numbers, which Go takes as well as base64.
    fn bytes<'de, A: SeqAccess<'de>>(self, mut access: A) -> Result<Option<Value>, A::Error> {
        let mut bytes = Vec::new();
        let mut wrong = None;
        while let Some(item) = access.next_element::<Value>()? {
            let found = match &item {
                Value::Null => Ok(0),
                Value::Number(number) => number
                    .as_u64()
                    .and_then(|number| u8::try_from(number).ok())
                    .ok_or_else(|| format!("number {number}")),
                other => Err(crate::patch::go_kind(other).to_owned()),
            };
            match found {
                Ok(byte) => bytes.push(byte),
                Err(found) => drop(wrong.get_or_insert(found)),
            }
        }
        Ok(match wrong {
            None => Some(Value::String(BASE64_STANDARD.encode(bytes))),
            Some(found) => Seed {
                go_type: "uint8",
                ..self
            }
            .mismatch(&found),
        })
    }

    fn map<'de, A: MapAccess<'de>>(
        self,
        value: Shape,
        mut access: A,
    ) -> Result<Option<Value>, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            if map.contains_key(&key) {
                self.walk.report("duplicate", &self.here, &key);
            }
            let here = Here {
                parent: Some(&self.here),
                step: Step::Key(&key),
                type_id: self.here.type_id,
            };
            let seed = Seed {
                walk: &mut *self.walk,
                shape: value,
                here,
                keep_empty: true,
                go_type: "",
            };
            let found = access.next_value_seed(seed)?;
            let found = found.unwrap_or_else(|| zero(self.walk.schema, value));
            map.insert(key, found);
        }
        Ok(if map.is_empty() && !self.keep_empty {
            None
        } else {
            Some(Value::Object(map))
        })
    }

    fn object<'de, A: MapAccess<'de>>(
        self,
        id: TypeId,
        mut access: A,
    ) -> Result<Option<Value>, A::Error> {
        let schema = self.walk.schema;
        let mut map = Map::new();
        let mut seen_null = false;
        let inside = Here {
            type_id: Some(id),
            ..self.here
        };
        while let Some(key) = access.next_key_seed(KeySeed { schema, id })? {
            let field = match key {
                Key::Field(field) => field,
                Key::Unknown(name) if schema.get(id).rest.is_some() => {
                    map.insert(name, access.next_value()?);
                    continue;
                }
                Key::Unknown(name) => {
                    self.walk.report("unknown", &inside, &name);
                    access.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            let name = schema.text(field.name);
            if map.contains_key(name) {
                self.walk.report("duplicate", &inside, name);
            }
            let here = Here {
                parent: Some(&inside),
                step: Step::Field(name),
                type_id: Some(id),
            };
            let seed = Seed {
                walk: &mut *self.walk,
                shape: field.shape,
                here,
                keep_empty: field.required || KEPT_EMPTY.contains(&name),
                go_type: schema.text(field.go_type),
            };
            let value = access.next_value_seed(seed)?;
            let value = value.filter(|value| !(field.drops_zero && is_zero(value)));
            seen_null |= value.is_none();
            map.insert(name.to_owned(), value.unwrap_or(Value::Null));
        }
        if seen_null {
            map.retain(|name, value| !value.is_null() || schema.field(id, name).is_none());
        }
        Ok(Some(Value::Object(map)))
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_, '_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(match (self.shape, self.kind()) {
            (Shape::Bool, _) => Some(Value::Bool(value)),
            (_, Some(TypeKind::Quantity)) => self.quantity(if value { "true" } else { "false" }),
            _ => self.mismatch("bool"),
        })
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(self.number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(self.number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("number out of range"))?;
        Ok(self.number(number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        let text = self.text(value);
        Ok(text.map(|canonical| Value::String(canonical.unwrap_or_else(|| value.to_owned()))))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Self::Value, E> {
        let text = self.text(&value);
        Ok(text.map(|canonical| Value::String(canonical.unwrap_or(value))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        if let Shape::List(item) = self.shape {
            let item = self.walk.schema.shape(item);
            return self.list(item, access);
        }
        if self.shape == Shape::Bytes {
            return self.bytes(access);
        }
        while access.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self.mismatch("array"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        match (self.shape, self.kind()) {
            (Shape::Map(value), _) => {
                let value = self.walk.schema.shape(value);
                return self.map(value, access);
            }
            (Shape::Type(id), Some(TypeKind::Struct)) => return self.object(id, access),
            _ => {}
        }
        while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(self.mismatch("object"))
    }
}

enum Key<'s> {
    Field(&'s crate::schema::Field),
    Unknown(String),
}

/// Looks a key up without copying it.
struct KeySeed<'s> {
    schema: &'s Schema,
    id: TypeId,
}

impl<'de, 's> DeserializeSeed<'de> for KeySeed<'s> {
    type Value = Key<'s>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'s> Visitor<'_> for KeySeed<'s> {
    type Value = Key<'s>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        let field = self.schema.field(self.id, name);
        Ok(field.map_or_else(|| Key::Unknown(name.to_owned()), Key::Field))
    }
}
