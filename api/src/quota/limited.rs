//! What may not be used without a quota that says how much: `limitedResources` of upstream's
//! `ResourceQuotaConfiguration`.

use super::{Amounts, Scope};
use crate::quantity::Quantity;

/// One entry: uses of a kind of object, and scopes that need a quota.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limited {
    pub group: String,
    pub plural: String,
    /// Amounts whose name contains one of these.
    pub contains: Vec<String>,
    pub scopes: Vec<Scope>,
}

impl Limited {
    pub(super) fn names_in<'a>(&'a self, usage: &'a Amounts) -> impl Iterator<Item = &'a str> {
        let used = usage.iter().filter(|(_, amount)| *amount > Quantity::ZERO);
        let names = used.map(|(name, _)| name);
        names.filter(|name| {
            self.contains
                .iter()
                .any(|part| name.contains(part.as_str()))
        })
    }
}
