//! Which Service an element is of. Two that claim the same one, such as one external address and
//! port, would else take turns in the kernel: the one whose cluster IP it is has it, or the first by
//! name; the other when that goes. Pure.

use super::steps::{Element, Value};
use crate::network::view::Key;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub struct Claims(BTreeMap<Element, Vec<(Claimant, Value)>>);

/// The least of an element's has it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Claimant {
    /// It is not about a cluster IP of the Service's own: nobody gets that of another by naming it
    /// among `externalIPs`.
    pub is_foreign: bool,
    pub key: Key,
}

/// The elements that a batch touches, with what the kernel has for them before it.
pub type Touched = BTreeMap<Element, Option<Value>>;

impl Claims {
    pub fn claim(&mut self, element: Element, by: Claimant, value: Value, touched: &mut Touched) {
        self.touch(element, touched);
        let claims = self.0.entry(element).or_default();
        claims.retain(|(held_by, _)| held_by.key != by.key);
        let place = claims.partition_point(|(held_by, _)| *held_by < by);
        // Most have one owner for ever: no room is kept for more.
        claims.reserve_exact(1);
        claims.insert(place, (by, value));
    }

    pub fn release(&mut self, element: Element, owner: &Key, touched: &mut Touched) {
        self.touch(element, touched);
        if let Some(claims) = self.0.get_mut(&element) {
            claims.retain(|(held_by, _)| held_by.key != *owner);
            if claims.is_empty() {
                self.0.remove(&element);
            }
        }
    }

    fn touch(&self, element: Element, touched: &mut Touched) {
        touched
            .entry(element)
            .or_insert_with(|| self.value(&element).cloned());
    }

    pub fn value(&self, element: &Element) -> Option<&Value> {
        let (_, value) = self.0.get(element)?.first()?;
        Some(value)
    }

    pub fn owner(&self, element: &Element) -> Option<&Key> {
        let (claimant, _) = self.0.get(element)?.first()?;
        Some(&claimant.key)
    }

    pub fn all(&self) -> impl Iterator<Item = (&Element, &Value)> {
        let claims = self.0.iter();
        claims.filter_map(|(element, claims)| Some((element, &claims.first()?.1)))
    }
}
