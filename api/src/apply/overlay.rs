//! A configuration of a mutating policy laid over an object: as an apply, but for managers, and
//! without leave to replace what the schema replaces as a whole.

use super::types::{Atom, Place, Relation, Types};
use super::{Writer, validate};
use serde_json::{Map, Value};

impl Writer<'_> {
    /// The object with the configuration laid over it. The error is in upstream's words.
    pub fn overlay(
        &self,
        object: &Map<String, Value>,
        configuration: &Map<String, Value>,
    ) -> Result<Map<String, Value>, String> {
        let (types, root) = (self.types(), self.root());
        let Some(root) = root else {
            let version = self.api_version;
            return Err(format!(
                "no corresponding type for {version}, Kind={}",
                self.kind
            ));
        };
        let wrong = types.validate(root, configuration);
        if !wrong.is_empty() {
            let why = validate::message(&wrong);
            return Err(format!(
                "failed to convert patch object to typed object: {why}"
            ));
        }
        let mut atomics = Vec::new();
        types.find_atomics(root, configuration, &mut atomics);
        if !atomics.is_empty() {
            return Err(format!(
                "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
                atomics.join(", ")
            ));
        }
        Ok(types.merge(root, object, configuration))
    }
}

impl<'s> Types<'s> {
    /// The paths of what would be replaced as a whole.
    fn find_atomics(&self, root: Place<'s>, object: &Map<String, Value>, found: &mut Vec<String>) {
        if let Atom::Map(map) = self.atom(root, None) {
            for (key, value) in object {
                if let Some(field) = self.named_field(&map, key) {
                    let path = format!(".{key}");
                    self.atomics_below(Place::Field(field), value, &path, found);
                }
            }
        }
    }

    fn atomics_below(&self, place: Place<'s>, value: &Value, path: &str, found: &mut Vec<String>) {
        match (self.atom(place, Some(value)), value) {
            (Atom::Map(map), Value::Object(fields)) => {
                if map.is_atomic {
                    found.push(path.to_owned());
                }
                for (key, value) in fields {
                    // Keys of a map are none of the schema's fields, and not looked into.
                    if let Some(field) = self.named_field(&map, key) {
                        let below = format!("{path}.{key}");
                        self.atomics_below(Place::Field(field), value, &below, found);
                    }
                }
            }
            (Atom::List(list), Value::Array(items)) => {
                if list.relation == Relation::Atomic {
                    found.push(path.to_owned());
                }
                for (index, item) in items.iter().enumerate() {
                    let below = format!("{path}[{index}]");
                    self.atomics_below(list.item, item, &below, found);
                }
            }
            _ => {}
        }
    }
}
