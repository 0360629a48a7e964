//! Owners that are known to be gone, so that their dependents need not ask the server each.
//!
//! A uid never comes back, so what is noted here stays true; the oldest are forgotten.

use std::collections::{HashSet, VecDeque};

use super::graph::Identity;

/// As many as upstream remembers.
const REMEMBERED_MAX: usize = 500;

#[derive(Debug, Default)]
pub(super) struct AbsentOwners {
    known: HashSet<Identity>,
    order: VecDeque<Identity>,
}

impl AbsentOwners {
    pub(super) fn add(&mut self, identity: Identity) {
        if !self.known.insert(identity.clone()) {
            return;
        }
        self.order.push_back(identity);
        if self.order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// With the namespace of the dependent, or as an owner that has none.
    pub(super) fn contains(&self, owner: &Identity) -> bool {
        let mut without = owner.clone();
        without.namespace = "".into();
        self.known.contains(owner) || self.known.contains(&without)
    }
}
