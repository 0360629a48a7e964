//! Takes out of a merged object what its applier applied before and no longer does.
//!
//! What anybody else manages stays, and so does what nobody applied.

use super::Writer;
use super::managed::{Entry, Managed};
use super::set::Set;
use super::types::{Place, Types};
use serde_json::{Map, Value};

type Root = Map<String, Value>;

impl Writer<'_> {
    /// `managed` has the applier's new set, `last` its set of the last time.
    pub(super) fn pruned(
        &self,
        merged: Root,
        managed: &Managed<'_>,
        last: Option<&Entry<'_>>,
    ) -> Root {
        let Some(last) = last.filter(|entry| !entry.set.is_empty()) else {
            return merged;
        };
        self.prune(&merged, managed, last).unwrap_or(merged)
    }

    /// `None` when a version is no more.
    fn prune(&self, merged: &Root, managed: &Managed<'_>, last: &Entry<'_>) -> Option<Root> {
        let types = self.types();
        let version = last.api_version.as_ref();
        let merged = self.in_version(self.api_version, version, merged)?;
        let root = self.root_in(version)?;
        let named = |set: &Set<'_>| types.with_named_fields(Some(root), set).into_owned();
        let last_named = named(&last.set);
        let mut pruned = types.without(root, &merged, &last_named);
        let (mut whole, mut at) = (merged.clone(), version.to_owned());
        for (other, owned) in by_version(managed, version) {
            let (Some(converted), Some(rest), Some(root)) = (
                self.in_version(&at, &other, &whole),
                self.in_version(&at, &other, &pruned),
                self.root_in(&other),
            ) else {
                continue;
            };
            pruned = with_owned_back(&types, root, &converted, &rest, &owned);
            (whole, at) = (converted, other);
        }
        let pruned = self.in_version(&at, version, &pruned)?;
        let gone = named(&types.fields_of(root, &merged))
            .difference(&named(&types.fields_of(root, &pruned)))
            .intersection(&last_named);
        let left = types.without(root, &merged, &gone);
        self.in_version(version, self.api_version, &left)
    }

    fn in_version(&self, from: &str, to: &str, object: &Root) -> Option<Root> {
        if from == to {
            return Some(object.clone());
        }
        self.convert(from, to, object)
    }

    fn root_in(&self, version: &str) -> Option<Place<'_>> {
        if version == self.api_version {
            return self.root();
        }
        self.root_of(version)
    }
}

/// What all managers have, by version, `first` before the others.
fn by_version(managed: &Managed<'_>, first: &str) -> Vec<(String, Set<'static>)> {
    let mut all: Vec<(String, Set<'static>)> = Vec::new();
    for entry in &managed.0 {
        let set = entry.set.clone().into_owned();
        match all
            .iter_mut()
            .find(|(version, _)| *version == entry.api_version)
        {
            Some((_, own)) => *own = std::mem::take(own).union(set),
            None => all.push((entry.api_version.as_ref().to_owned(), set)),
        }
    }
    all.sort_by_key(|(version, _)| version != first);
    all
}

/// The pruned object with what it lost and somebody manages.
fn with_owned_back<'s>(
    types: &Types<'s>,
    root: Place<'s>,
    merged: &Root,
    pruned: &Root,
    owned: &Set<'_>,
) -> Root {
    let named = |set: &Set<'_>| types.with_named_fields(Some(root), set).into_owned();
    let kept = named(&types.fields_of(root, pruned)).union(named(owned));
    let gone = named(&types.fields_of(root, merged)).difference(&kept);
    types.without(root, merged, &gone)
}
