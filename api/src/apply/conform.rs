//! Brings a set that was written under another schema into the form of this one.
//!
//! What was granular and is atomic now: who owned a part of it owns all of it.

use super::element::Element;
use super::set::Set;
use super::types::{Atom, Place, Relation, Types};

impl<'s> Types<'s> {
    /// The set as it reads under this schema; `None` when it is right as it is.
    pub fn conformed<'a>(&self, root: Place<'s>, set: &Set<'a>) -> Option<Set<'a>> {
        let mut collapsed = Set::default();
        self.collapse(root, set, false, &mut Vec::new(), &mut collapsed);
        if collapsed.is_empty() {
            return None;
        }
        Some(set.recursive_difference(&collapsed).union(collapsed))
    }

    /// Notes the paths of atomic values of which `set` has parts. `is_whole` when the set has the
    /// value itself and nothing below it.
    fn collapse<'a>(
        &self,
        place: Place<'s>,
        set: &Set<'a>,
        is_whole: bool,
        path: &mut Vec<Element<'a>>,
        out: &mut Set<'a>,
    ) {
        let atom = self.atom(place, None);
        match atom {
            Atom::Scalar(_) => return,
            Atom::List(list) if list.relation == Relation::Atomic => {
                if !is_whole {
                    out.insert_path(path);
                }
                return;
            }
            Atom::Map(map) if map.is_atomic => {
                if !is_whole && !set.is_empty() {
                    out.insert_path(path);
                }
                return;
            }
            // Types that are deduced were never granular by a schema.
            Atom::Map(map) if map.fields.is_none() && matches!(place, Place::Deduced) => return,
            _ => {}
        }
        for node in set.nodes() {
            let below = match (&atom, &node.element) {
                (Atom::List(list), _) => Some(list.item),
                (Atom::Map(map), Element::Field(name)) => self.child(map, name),
                (Atom::Map(map), _) => map.value,
                (Atom::Scalar(_), _) => None,
            };
            let Some(below) = below else { continue };
            let is_whole = node.is_member && node.children.is_empty();
            path.push(node.element.clone());
            self.collapse(below, &node.children, is_whole, path, out);
            path.pop();
        }
    }
}
