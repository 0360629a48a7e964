//! Takes fields and items out of a value.

use super::element::Element;
use super::set::Set;
use super::types::{Atom, MapAtom, Place, Relation, Types};
use serde_json::{Map, Value};

impl<'s> Types<'s> {
    /// The object without the members of `gone`.
    pub fn without(
        &self,
        root: Place<'s>,
        object: &Map<String, Value>,
        gone: &Set<'_>,
    ) -> Map<String, Value> {
        match self.atom(root, None) {
            Atom::Map(map) => self.map_without(&map, object, gone).0,
            _ => object.clone(),
        }
    }

    /// `None` when nothing is left. What lost only parts of itself is left, be it empty.
    fn value_without(&self, place: Place<'s>, value: &Value, gone: &Set<'_>) -> Option<Value> {
        match self.atom(place, Some(value)) {
            Atom::Scalar(_) => Some(value.clone()),
            Atom::List(list) => {
                let items = value.as_array().filter(|items| !items.is_empty())?;
                if list.relation == Relation::Atomic {
                    return None;
                }
                let (mut left, mut lost_parts) = (Vec::with_capacity(items.len()), false);
                for item in items {
                    let node = self.step(&list, item).ok().and_then(|step| gone.get(&step));
                    if node.is_some_and(|node| node.is_member) {
                        continue;
                    }
                    left.push(match node {
                        Some(node) => {
                            lost_parts = true;
                            self.part_without(list.item, item, &node.children)
                        }
                        None => item.clone(),
                    });
                }
                (!left.is_empty() || lost_parts).then_some(Value::Array(left))
            }
            Atom::Map(map) => {
                let entries = value.as_object().filter(|entries| !entries.is_empty())?;
                if map.is_atomic {
                    return None;
                }
                let (left, lost_parts) = self.map_without(&map, entries, gone);
                (!left.is_empty() || lost_parts).then_some(Value::Object(left))
            }
        }
    }

    /// A field or item that stays, without parts of itself.
    fn part_without(&self, place: Place<'s>, value: &Value, gone: &Set<'_>) -> Value {
        let left = self.value_without(place, value, gone);
        left.unwrap_or_else(|| match value {
            Value::Object(_) => Value::Object(Map::new()),
            Value::Array(_) => Value::Array(Vec::new()),
            _ => Value::Null,
        })
    }

    fn map_without(
        &self,
        map: &MapAtom<'s>,
        entries: &Map<String, Value>,
        gone: &Set<'_>,
    ) -> (Map<String, Value>, bool) {
        let (mut left, mut lost_parts) = (Map::new(), false);
        for (key, value) in entries {
            let node = gone.get(&Element::field(key));
            if node.is_some_and(|node| node.is_member) {
                continue;
            }
            let value = match node {
                Some(node) => {
                    lost_parts = true;
                    let place = self.child(map, key).unwrap_or(Place::Deduced);
                    self.part_without(place, value, &node.children)
                }
                None => value.clone(),
            };
            left.insert(key.clone(), value);
        }
        (left, lost_parts)
    }
}
