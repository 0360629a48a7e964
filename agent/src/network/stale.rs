//! Chains that nothing needs any more: emptied at once, and deleted by the second sweep after that,
//! so that each has been empty from one sweep to the next. Until Linux 6.2 a chain counted as in use
//! for some time after the last element that led to it was gone. Pure.

use std::borrow::Borrow;
use std::collections::BTreeSet;

#[derive(Debug)]
pub struct Stale<C> {
    /// Empty since the last sweep.
    new: BTreeSet<C>,
    /// Empty for longer.
    ripe: BTreeSet<C>,
}

impl<C> Default for Stale<C> {
    fn default() -> Self {
        Self {
            new: BTreeSet::new(),
            ripe: BTreeSet::new(),
        }
    }
}

impl<C: Ord> Stale<C> {
    pub fn add(&mut self, chain: C) {
        self.new.insert(chain);
    }

    /// It is used again.
    pub fn remove<Q: Ord + ?Sized>(&mut self, chain: &Q)
    where
        C: Borrow<Q>,
    {
        self.new.remove(chain);
        self.ripe.remove(chain);
    }

    /// Of all that there are, these are stale from now on.
    pub fn replace(&mut self, chains: impl IntoIterator<Item = C>) {
        self.ripe.clear();
        self.new = chains.into_iter().collect();
    }

    /// Gives those that are to be deleted.
    pub fn sweep(&mut self) -> BTreeSet<C> {
        std::mem::replace(&mut self.ripe, std::mem::take(&mut self.new))
    }

    /// Whether a sweep is to come.
    pub fn has_any(&self) -> bool {
        !self.new.is_empty() || !self.ripe.is_empty()
    }

    /// Those that no sweep has seen yet.
    pub fn fresh(&self) -> impl Iterator<Item = &C> {
        self.new.iter()
    }
}
