//! Lays an applied configuration over an object. Removes nothing.
//!
//! What both name takes the applied value; lists keep the object's order until the configuration
//! orders their items anew.

use super::compare::zip_maps;
use super::element::Element;
use super::types::{Atom, ListAtom, MapAtom, Place, Relation, Types};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

impl<'s> Types<'s> {
    /// The object with the configuration laid over it.
    pub fn merge(
        &self,
        root: Place<'s>,
        object: &Map<String, Value>,
        applied: &Map<String, Value>,
    ) -> Map<String, Value> {
        match self.atom(root, None) {
            Atom::Map(map) => self.merge_maps(&map, Some(object), Some(applied)),
            _ => object.clone(),
        }
    }

    fn merge_values(
        &self,
        place: Place<'s>,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> Option<Value> {
        let atom = self.atom(place, new.or(old));
        let kept = || new.or(old).cloned();
        match atom {
            Atom::Scalar(_) => kept(),
            Atom::List(list) => {
                let lists = [old, new].map(|value| value.and_then(Value::as_array));
                let is_empty = lists.iter().all(|list| list.is_none_or(Vec::is_empty));
                if list.relation == Relation::Atomic || is_empty {
                    return kept();
                }
                let [old, new] = lists.map(|list| list.map_or(&[][..], Vec::as_slice));
                let merged = self.merge_lists(&list, old, new);
                (!merged.is_empty()).then_some(Value::Array(merged))
            }
            Atom::Map(map) => {
                let maps = [old, new].map(|value| value.and_then(Value::as_object));
                let is_empty = maps.iter().all(|map| map.is_none_or(Map::is_empty));
                if map.is_atomic || is_empty {
                    return kept();
                }
                let merged = self.merge_maps(&map, maps[0], maps[1]);
                (!merged.is_empty()).then_some(Value::Object(merged))
            }
        }
    }

    fn merge_maps(
        &self,
        map: &MapAtom<'s>,
        old: Option<&Map<String, Value>>,
        new: Option<&Map<String, Value>>,
    ) -> Map<String, Value> {
        let merged = zip_maps(old, new).filter_map(|(key, (old, new))| {
            let place = self.child(map, key).unwrap_or(Place::Deduced);
            Some((key.to_owned(), self.merge_values(place, old, new)?))
        });
        merged.collect()
    }

    fn merge_lists(&self, list: &ListAtom<'s>, old: &[Value], new: &[Value]) -> Vec<Value> {
        let mut weave = Weave::new(self, list, old, new);
        let (mut left, mut right) = (0, 0);
        while left < weave.old.len() || right < weave.new.len() {
            if left < weave.old.len() && right < weave.new.len() {
                let step = &weave.old[left].0;
                if *step == weave.new[right].0 {
                    weave.take_new(right);
                    weave.advance_shared();
                    (left, right) = (left + 1, right + 1);
                    continue;
                }
                let waits = weave.shared.front().is_some_and(|&next| {
                    weave.new[next].0 != *step && weave.by_new.contains_key(step)
                });
                if waits {
                    left += 1;
                    continue;
                }
            }
            if left < weave.old.len() {
                let step = &weave.old[left].0;
                if !weave.by_new.contains_key(step) {
                    weave.take_old(left);
                    left += 1;
                    continue;
                } else if weave.taken.contains(step) {
                    left += 1;
                }
            }
            if right < weave.new.len() {
                weave.take_new(right);
                if weave.shared.front() == Some(&right) {
                    weave.advance_shared();
                }
                right += 1;
            }
        }
        weave.out
    }
}

/// Two lists on their way into one.
struct Weave<'w, 's> {
    types: &'w Types<'s>,
    list: &'w ListAtom<'s>,
    old: Vec<(Element<'w>, &'w Value)>,
    new: Vec<(Element<'w>, &'w Value)>,
    /// `None` for an item that is there twice: nothing merges into it.
    by_old: BTreeMap<Element<'w>, Option<&'w Value>>,
    by_new: BTreeMap<Element<'w>, &'w Value>,
    /// Places in `new` of the items that both have, in the order of `new`.
    shared: VecDeque<usize>,
    taken: BTreeSet<Element<'w>>,
    out: Vec<Value>,
}

impl<'w, 's: 'w> Weave<'w, 's> {
    fn new(
        types: &'w Types<'s>,
        list: &'w ListAtom<'s>,
        old: &'w [Value],
        new: &'w [Value],
    ) -> Self {
        let steps = |items: &'w [Value]| -> Vec<(Element<'w>, &'w Value)> {
            let steps = items
                .iter()
                .map(|item| Some((types.step(list, item).ok()?, item)));
            steps.flatten().collect()
        };
        let (old, new) = (steps(old), steps(new));
        let mut by_old = BTreeMap::new();
        for (step, item) in &old {
            by_old
                .entry(step.clone())
                .and_modify(|one| *one = None)
                .or_insert(Some(*item));
        }
        let by_new = new.iter().cloned().collect();
        let in_both = |(_, (step, _)): &(usize, &(Element<'w>, &Value))| by_old.contains_key(step);
        let shared = new
            .iter()
            .enumerate()
            .filter(in_both)
            .map(|one| one.0)
            .collect();
        Self {
            types,
            list,
            old,
            new,
            by_old,
            by_new,
            shared,
            taken: BTreeSet::new(),
            out: Vec::new(),
        }
    }

    fn advance_shared(&mut self) {
        self.shared.pop_front();
    }

    fn take_old(&mut self, index: usize) {
        let item = self.old[index].1;
        self.out
            .extend(self.types.merge_values(self.list.item, Some(item), None));
    }

    /// Takes an item of the configuration, over the object's item of the same step.
    fn take_new(&mut self, index: usize) {
        let (step, item) = &self.new[index];
        self.taken.insert(step.clone());
        let old = self
            .by_old
            .get(step)
            .map(|one| one.unwrap_or(&crate::json::NULL));
        self.out
            .extend(self.types.merge_values(self.list.item, old, Some(item)));
    }
}
