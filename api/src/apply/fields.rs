//! The set of all fields that a value names.

use super::element::Element;
use super::set::Set;
use super::types::{Atom, ListAtom, MapAtom, Place, Relation, Types};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

impl<'s> Types<'s> {
    /// Every leaf and item of an object.
    pub fn fields_of<'a>(&self, root: Place<'s>, object: &'a Map<String, Value>) -> Set<'a>
    where
        's: 'a,
    {
        let mut set = Set::default();
        if let Atom::Map(map) = self.atom(root, None) {
            self.fields_of_map(&map, object, &mut set);
        }
        set
    }

    /// Puts what is below a value into `out`; true when the value itself is a leaf.
    fn fields_of_value<'a>(&self, place: Place<'s>, value: &'a Value, out: &mut Set<'a>) -> bool
    where
        's: 'a,
    {
        match self.atom(place, Some(value)) {
            Atom::Scalar(_) => true,
            Atom::List(list) if list.relation == Relation::Atomic => true,
            Atom::List(list) => {
                self.fields_of_list(&list, value.as_array().map_or(&[], Vec::as_slice), out);
                false
            }
            Atom::Map(map) if map.is_atomic => true,
            Atom::Map(map) => {
                if let Some(value) = value.as_object() {
                    self.fields_of_map(&map, value, out);
                }
                false
            }
        }
    }

    fn fields_of_map<'a>(
        &self,
        map: &MapAtom<'s>,
        object: &'a Map<String, Value>,
        out: &mut Set<'a>,
    ) where
        's: 'a,
    {
        for (key, value) in object {
            let mut below = Set::default();
            let place = self.child(map, key).unwrap_or(Place::Deduced);
            let is_leaf = self.fields_of_value(place, value, &mut below);
            let is_bare = value.is_null() || value.as_object().is_some_and(Map::is_empty);
            let is_member = is_leaf || is_bare || self.named_field(map, key).is_none();
            out.add(Element::Field(Cow::Borrowed(key)), is_member, below);
        }
    }

    fn fields_of_list<'a>(&self, list: &ListAtom<'s>, items: &'a [Value], out: &mut Set<'a>)
    where
        's: 'a,
    {
        let mut found: BTreeMap<Element<'a>, Option<&'a Value>> = BTreeMap::new();
        for item in items {
            if let Ok(step) = self.step(list, item) {
                // An item that is there twice is one leaf.
                found
                    .entry(step)
                    .and_modify(|one| *one = None)
                    .or_insert(Some(item));
            }
        }
        for (step, item) in found {
            let mut below = Set::default();
            if let Some(item) = item {
                self.fields_of_value(list.item, item, &mut below);
            }
            out.add(step, true, below);
        }
    }

    /// The set with all named fields on the way to a member as members too; keys of maps are not.
    pub fn with_named_fields<'a>(&self, place: Option<Place<'s>>, set: &Set<'a>) -> Set<'a> {
        let atom = place.map(|place| self.atom(place, None));
        let mut out = Set::default();
        for node in set.nodes() {
            let (mut is_member, mut below) = (node.is_member, None);
            match (&node.element, &atom) {
                (Element::Field(name), Some(Atom::Map(map))) => {
                    below = self.child(map, name);
                    let has_children = !node.children.is_empty();
                    is_member |= has_children && self.named_field(map, name).is_some();
                }
                (Element::Key(_), Some(Atom::List(list))) => below = Some(list.item),
                _ => {}
            }
            let children = self.with_named_fields(below, &node.children);
            out.add(node.element.clone(), is_member, children);
        }
        out
    }
}
