//! The store's logical clock: one number for all partitions, rising with each change.

use std::fmt;

/// Zero is before the first change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl Revision {
    /// A million changes a second would take 146,000 years to come here: one beyond it is damage,
    /// and below it there is room to go on.
    pub(crate) const MAX: Self = Self(1 << 62);

    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
