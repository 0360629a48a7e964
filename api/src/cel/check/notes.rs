//! What was found of the parts of an expression, for whoever asks what it costs.

use crate::cel::types::{Bindings, Type};
use std::collections::{HashMap, HashSet};

/// An expression in which nothing is wrong.
#[derive(Debug)]
pub struct Checked {
    /// The type of its result.
    pub of: Type,
    pub(super) notes: Notes,
    pub(super) bindings: Bindings,
}

/// What was found of the nodes, for whoever asks what they cost.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) types: HashMap<u64, Type>,
    /// The overloads that a call may mean, by their place in the table.
    pub(super) overloads: HashMap<u64, Vec<usize>>,
    /// Names with dots.
    pub(super) names: HashSet<u64>,
}

impl Checked {
    pub fn type_of(&self, node: u64) -> Type {
        let found = self.notes.types.get(&node);
        found.map_or(Type::Dyn, |found| self.bindings.resolved(found, true))
    }

    pub fn overloads(&self, node: u64) -> &[usize] {
        self.notes.overloads.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Whether a selection is the name of a variable.
    pub fn is_name(&self, node: u64) -> bool {
        self.notes.names.contains(&node)
    }

    /// Parts of types that were looked at.
    pub fn steps(&self) -> usize {
        self.bindings.steps()
    }
}
