//! Which requests may come without a certificate or token: all, none, or those of some paths.

use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anonymous {
    Everywhere,
    Nowhere,
    /// Of the paths exactly, without what is below them.
    Paths(BTreeSet<String>),
}

impl Anonymous {
    /// `--anonymous-auth`.
    pub fn from_flag(is_allowed: bool) -> Self {
        if is_allowed {
            Self::Everywhere
        } else {
            Self::Nowhere
        }
    }

    pub fn allows(&self, path: &str) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Nowhere => false,
            Self::Paths(paths) => paths.contains(path),
        }
    }
}
