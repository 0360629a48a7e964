//! What no file says any more. Pure.

use super::Said;
use super::directory::File;
use super::record::{Entry, Identity, Key, Record};
use std::collections::{BTreeMap, BTreeSet};

/// What is to be taken away of one record.
#[derive(Debug)]
pub struct Step {
    pub record: Record,
    pub surplus: Vec<Entry>,
    /// The file is gone: so is the record, in the end.
    pub is_gone: bool,
}

/// Whether a kind, by its apiVersion and name, is in namespaces; what is not in it is not known.
pub type Namespaced = BTreeMap<(String, String), bool>;

/// A file that is bad, or cannot be read now, says what it said before. While that is not known,
/// because it is new or still being written, it may say whatever another one said until now, and
/// nothing at all is taken away.
pub fn plan(
    records: &BTreeMap<String, Record>,
    files: &[File],
    said: &BTreeMap<&str, Said>,
    namespaced: &Namespaced,
) -> Vec<Step> {
    let is_unknown = |file: &File| {
        let name = file.name.as_str();
        // A failure alone is recorded, too.
        let is_new = || {
            records
                .get(name)
                .is_none_or(|record| record.entries.is_empty())
        };
        file.is_young || !said.get(name).is_some_and(Result::is_ok) && is_new()
    };
    if files.iter().any(is_unknown) {
        return Vec::new();
    }
    let mut wanted: Vec<Identity> = Vec::new();
    let mut settled: BTreeSet<&str> = BTreeSet::new();
    for file in files {
        let name = file.name.as_str();
        let known = said.get(name).and_then(|said| said.as_ref().ok());
        match known {
            Some(objects) => {
                settled.insert(name);
                wanted.extend(objects.iter().flat_map(|one| {
                    let kind = (one.api_version.clone(), one.kind.clone());
                    // Of a kind that is not known yet, either may be meant.
                    let meant = match namespaced.get(&kind) {
                        Some(is_namespaced) => vec![*is_namespaced],
                        None => vec![true, false],
                    };
                    let identity = |is_namespaced| one.identity(is_namespaced);
                    meant.into_iter().map(identity).collect::<Vec<_>>()
                }));
            }
            None => {
                let before = records.get(name).into_iter();
                let before = before.flat_map(|record| record.entries.iter());
                wanted.extend(before.map(|entry| entry.identity.clone()));
            }
        }
    }
    let wanted: BTreeSet<Key<'_>> = wanted.iter().map(Identity::key).collect();
    let present: BTreeSet<&str> = files.iter().map(|file| file.name.as_str()).collect();
    let steps = records.values().map(|record| {
        let name = record.file.as_str();
        let is_gone = !present.contains(name);
        let may_lose = is_gone || settled.contains(name);
        let mut record = record.clone();
        let surplus = |entry: &&Entry| may_lose && !wanted.contains(&entry.identity.key());
        let (made, let_go): (Vec<Entry>, Vec<Entry>) = record
            .entries
            .iter()
            .filter(surplus)
            .cloned()
            .partition(|entry| entry.is_made);
        record.entries.retain(|one| !let_go.contains(one));
        // What another file says now is its affair, once it was applied for that one: until then
        // nothing else tells that it was made for a file.
        if is_gone {
            record.entries.retain(|one| {
                let has_it = |file: &&str| {
                    let other = records.get(*file);
                    other.is_some_and(|other| other.entry(&one.identity).is_some())
                };
                !wanted.contains(&one.identity.key()) || !present.iter().any(has_it)
            });
        }
        Step {
            record,
            surplus: in_reverse(made),
            is_gone,
        }
    });
    steps
        .filter(|step| step.is_gone || !step.surplus.is_empty())
        .collect()
}

/// What others need goes last.
fn in_reverse(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.reverse();
    entries
}

#[cfg(test)]
mod tests;
