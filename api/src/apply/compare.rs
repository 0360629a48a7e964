//! What changed between two values of one type: fields added, modified, removed.

use super::element::Element;
use super::set::Set;
use super::types::{Atom, ListAtom, MapAtom, Place, Types};
use super::value;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The field of metadata that says who manages what, which nobody manages.
const MANAGED_FIELDS: &str = "managedFields";

/// No field is in more than one of the three.
#[derive(Clone, Debug, Default)]
pub struct Comparison<'a> {
    pub added: Set<'a>,
    pub modified: Set<'a>,
    pub removed: Set<'a>,
}

impl Comparison<'_> {
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// True when nothing changed but what is in `set`.
    pub fn is_only(&self, set: &Set<'_>) -> bool {
        [&self.added, &self.modified, &self.removed]
            .iter()
            .all(|changed| changed.is_empty() || changed.difference(set).is_empty())
    }
}

/// What happened to one value as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    None,
    Added,
    Modified,
    Removed,
}

impl<'a> Comparison<'a> {
    fn add(&mut self, element: Element<'a>, change: Change, below: Comparison<'a>) {
        if change == Change::None && below.is_same() {
            return;
        }
        let sets = [
            (&mut self.added, Change::Added, below.added),
            (&mut self.modified, Change::Modified, below.modified),
            (&mut self.removed, Change::Removed, below.removed),
        ];
        for (set, kind, children) in sets {
            let is_member = change == kind;
            if is_member || !children.is_empty() {
                set.add(element.clone(), is_member, children);
            }
        }
    }
}

type Two<'v, T> = (Option<&'v T>, Option<&'v T>);

impl<'s> Types<'s> {
    /// Compares two objects of a type by their roots.
    pub fn compare<'a>(
        &self,
        root: Place<'s>,
        old: &'a Map<String, Value>,
        new: &'a Map<String, Value>,
    ) -> Comparison<'a>
    where
        's: 'a,
    {
        let mut comparison = Comparison::default();
        if let Atom::Map(map) = self.atom(root, None) {
            self.compare_maps(&map, (Some(old), Some(new)), &mut comparison);
        }
        comparison
    }

    /// Compares two values, of which at least one is there; what is below goes to `out`.
    fn compare_values<'a>(
        &self,
        place: Place<'s>,
        (old, new): Two<'a, Value>,
        out: &mut Comparison<'a>,
    ) -> Change
    where
        's: 'a,
    {
        let (before, after) = (self.atom(place, old), self.atom(place, new));
        let mut leaf_changed = false;
        match (old, new) {
            (_, None) => leaf_changed |= self.compare_as(&before, (old, new), out),
            (None, _) => leaf_changed |= self.compare_as(&after, (old, new), out),
            _ => {
                if !before.is_like(&after) {
                    leaf_changed |= self.compare_as(&before, (old, new), out);
                }
                leaf_changed |= self.compare_as(&after, (old, new), out);
            }
        }
        match (old, new) {
            (None, _) => Change::Added,
            (_, None) => Change::Removed,
            _ if leaf_changed => Change::Modified,
            _ => Change::None,
        }
    }

    /// True when the values are leaves and differ.
    fn compare_as<'a>(
        &self,
        atom: &Atom<'s>,
        (old, new): Two<'a, Value>,
        out: &mut Comparison<'a>,
    ) -> bool
    where
        's: 'a,
    {
        let differs = || match (old, new) {
            (Some(old), Some(new)) => !value::equal(old, new),
            _ => false,
        };
        match atom {
            Atom::Scalar(_) => differs(),
            Atom::List(list) => {
                let lists = (old.and_then(Value::as_array), new.and_then(Value::as_array));
                let is_empty = |list: Option<&Vec<Value>>| list.is_none_or(Vec::is_empty);
                let is_leaf = list.relation == super::types::Relation::Atomic
                    || is_empty(lists.0) && is_empty(lists.1);
                if is_leaf {
                    return differs();
                }
                self.compare_lists(list, lists, out);
                false
            }
            Atom::Map(map) => {
                let maps = (
                    old.and_then(Value::as_object),
                    new.and_then(Value::as_object),
                );
                let is_empty = |map: Option<&Map<String, Value>>| map.is_none_or(Map::is_empty);
                if map.is_atomic || is_empty(maps.0) && is_empty(maps.1) {
                    return differs();
                }
                self.compare_maps(map, maps, out);
                false
            }
        }
    }

    fn compare_maps<'a>(
        &self,
        map: &MapAtom<'s>,
        (old, new): Two<'a, Map<String, Value>>,
        out: &mut Comparison<'a>,
    ) where
        's: 'a,
    {
        let is_metadata = map
            .fields
            .is_some_and(|id| self.schema.type_name(id).ends_with(".ObjectMeta"));
        for (key, values) in zip_maps(old, new) {
            if is_metadata && key == MANAGED_FIELDS {
                continue;
            }
            let place = self.child(map, key).unwrap_or(Place::Deduced);
            let mut below = Comparison::default();
            let change = self.compare_values(place, values, &mut below);
            out.add(Element::Field(Cow::Borrowed(key)), change, below);
        }
    }

    fn compare_lists<'a>(
        &self,
        list: &ListAtom<'s>,
        (old, new): Two<'a, Vec<Value>>,
        out: &mut Comparison<'a>,
    ) where
        's: 'a,
    {
        let mut items: BTreeMap<Element<'a>, [Vec<&'a Value>; 2]> = BTreeMap::new();
        for (side, values) in [old, new].into_iter().enumerate() {
            for item in values.into_iter().flatten() {
                // What has no step was refused when it was written.
                if let Ok(step) = self.step(list, item) {
                    items.entry(step).or_default()[side].push(item);
                }
            }
        }
        for (step, [old, new]) in items {
            let mut below = Comparison::default();
            let change = match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => {
                    let values = (old.first().copied(), new.first().copied());
                    self.compare_values(list.item, values, &mut below)
                }
                // Twice before and after: as if they were one value.
                ([_, _, ..], [_, _, ..]) => {
                    let same = old.len() == new.len()
                        && old.iter().zip(&new).all(|(a, b)| value::equal(a, b));
                    if same { Change::None } else { Change::Modified }
                }
                // No longer twice: what is left counts as new.
                ([_, _, ..], rest) => {
                    if let Some(one) = rest.first() {
                        self.compare_values(list.item, (None, Some(one)), &mut below);
                        out.add(step.clone(), Change::Added, std::mem::take(&mut below));
                    }
                    Change::Removed
                }
                (rest, _) => {
                    if let Some(one) = rest.first() {
                        self.compare_values(list.item, (Some(one), None), &mut below);
                        out.add(step.clone(), Change::Removed, std::mem::take(&mut below));
                    }
                    Change::Added
                }
            };
            out.add(step, change, below);
        }
    }
}

/// The keys of both maps, in order, with their values.
pub(super) fn zip_maps<'a>(
    old: Option<&'a Map<String, Value>>,
    new: Option<&'a Map<String, Value>>,
) -> impl Iterator<Item = (&'a str, Two<'a, Value>)> {
    let mut old = old.into_iter().flatten().peekable();
    let mut new = new.into_iter().flatten().peekable();
    std::iter::from_fn(move || {
        let order = match (old.peek(), new.peek()) {
            (Some((a, _)), Some((b, _))) => a.cmp(b),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => return None,
        };
        let left = if order.is_le() { old.next() } else { None };
        let right = if order.is_ge() { new.next() } else { None };
        let key = left.or(right).map(|(key, _)| key.as_str())?;
        Some((key, (left.map(|one| one.1), right.map(|one| one.1))))
    })
}
