//! Documents of no known type, read so that no key is lost: what a map has twice is reported.

use super::go;
use super::place::{Here, Step};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// As upstream: enough to mend a patch by.
const ERRORS_MAX: usize = 100;

/// Reads JSON; the last of several values of a key stays, and `duplicate field "a.b"` is reported.
pub fn value(bytes: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let mut errors = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let seed = Seed {
        errors: &mut errors,
        here: Here {
            parent: None,
            step: Step::Root,
            type_id: None,
        },
    };
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, errors))
}

/// What is wrong with the operations of a JSON patch beyond what makes it no patch.
pub fn json_patch_errors(bytes: &[u8]) -> Vec<String> {
    const FIELDS: [&str; 4] = ["op", "path", "from", "value"];
    let Ok((value, mut errors)) = value(bytes) else {
        return Vec::new();
    };
    for (index, operation) in value.as_array().into_iter().flatten().enumerate() {
        for name in operation.as_object().into_iter().flat_map(Map::keys) {
            if !FIELDS.contains(&name.as_str()) && errors.len() < ERRORS_MAX {
                let path = go::quoted(&format!("[{index}].{name}"));
                errors.push(format!("unknown field {path}"));
            }
        }
    }
    let errors = errors
        .into_iter()
        .map(|error| format!("json patch {error}"));
    errors.collect()
}

struct Seed<'e, 'p> {
    errors: &'e mut Vec<String>,
    here: Here<'p>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value);
        number
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let seed = Seed {
                errors: &mut *self.errors,
                here: Here {
                    parent: Some(&self.here),
                    step: Step::Index(items.len()),
                    type_id: None,
                },
            };
            match access.next_element_seed(seed)? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let here = Here {
                parent: Some(&self.here),
                step: Step::Field(&key),
                type_id: None,
            };
            if map.contains_key(&key) && self.errors.len() < ERRORS_MAX {
                let mut path = String::new();
                here.write(&mut path);
                self.errors
                    .push(format!("duplicate field {}", go::quoted(&path)));
            }
            let seed = Seed {
                errors: &mut *self.errors,
                here,
            };
            let value = access.next_value_seed(seed)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
