//! The kinds that a server has: the built-in ones, and those that definitions brought.

use super::order;
use super::rows::{Rows, TooMany};
use crate::catalogue::{self, Group};
use crate::object::Object;
use crate::resource::Resource;
use std::collections::{BTreeMap, HashMap};

/// All kinds at one time. Cheap to look up in, made anew when a definition changes.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    /// By group and version in their order, then by plural.
    custom: Vec<&'static Resource>,
    by_path: HashMap<(&'static str, &'static str, &'static str), &'static Resource>,
    /// By group and plural: the row of the version in which objects are stored, if it is served.
    stored: HashMap<(&'static str, &'static str), &'static Resource>,
    groups: Vec<Group>,
    /// Groups that there was no room for.
    pub left_out: Vec<&'static str>,
}

/// A definition that is served.
#[derive(Clone, Debug)]
pub struct Served {
    pub rows: Vec<&'static Resource>,
    /// The version in which objects are stored.
    pub storage_version: String,
    /// Another one says that what was known of the kind holds no more.
    pub identity: (String, u64),
}

impl Served {
    /// `None` for a definition that is not established.
    pub fn of(definition: &Object, rows: &mut Rows) -> Result<Option<Self>, TooMany> {
        let is_ready = ["Established", "NamesAccepted"]
            .iter()
            .any(|kind| super::condition_is_true(definition, kind));
        let has_names = ["plural", "singular", "kind", "listKind"]
            .iter()
            .all(|name| {
                !definition
                    .str(&["status", "acceptedNames", name])
                    .is_empty()
            });
        // A group of ours has kinds of ours alone.
        let group = definition.str(&["spec", "group"]);
        let is_ours = catalogue::groups().any(|own| own.name == group);
        if !is_ready || !has_names || is_ours {
            return Ok(None);
        }
        let storage = definition
            .list(&["spec", "versions"])
            .iter()
            .find(|one| crate::json::flag(one, "storage"));
        let storage = storage.map(|one| crate::json::text(one, "name").to_owned());
        Ok(Some(Self {
            rows: rows.of(definition)?,
            storage_version: storage.unwrap_or_default(),
            identity: identity(definition),
        }))
    }
}

fn identity(definition: &Object) -> (String, u64) {
    let parts = [&["spec"][..], &["status", "acceptedNames"]];
    let texts = parts.map(|path| definition.get(path).map(ToString::to_string));
    let told = texts.map(Option::unwrap_or_default).concat();
    let fingerprint = crate::openapi::fingerprint(told.as_bytes());
    (definition.uid().to_owned(), fingerprint)
}

impl Kinds {
    /// The built-in kinds with those of definitions.
    pub fn with<'a>(served: impl Iterator<Item = &'a Served>, rows: &mut Rows) -> Self {
        let mut kinds = Self::default();
        let mut groups: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        for one in served {
            for row in &one.rows {
                kinds.custom.push(row);
                let path = (row.group, row.version, row.plural);
                kinds.by_path.insert(path, row);
                if row.version == one.storage_version {
                    kinds.stored.insert((row.group, row.plural), row);
                }
                let versions = groups.entry(row.group).or_default();
                if !versions.iter().any(|version| version == row.version) {
                    versions.push(row.version.to_owned());
                }
            }
        }
        for (name, mut versions) in groups {
            order::sort(&mut versions);
            match rows.list(&versions) {
                Ok(versions) => kinds.groups.push(Group { name, versions }),
                Err(TooMany) => kinds.left_out.push(name),
            }
        }
        let is_left_out = |group: &str| kinds.left_out.contains(&group);
        kinds.custom.retain(|row| !is_left_out(row.group));
        kinds.by_path.retain(|path, _| !is_left_out(path.0));
        kinds.stored.retain(|place, _| !is_left_out(place.0));
        kinds.custom.sort_by(|a, b| {
            let versions = order::priority(b.version).cmp(&order::priority(a.version));
            let plurals = a.plural.cmp(b.plural);
            a.group.cmp(b.group).then(versions).then(plurals)
        });
        kinds
    }

    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
        catalogue::find(group, version, plural)
            .or_else(|| self.by_path.get(&(group, version, plural)).copied())
    }

    pub fn by_kind(&self, group: &str, version: &str, kind: &str) -> Option<&'static Resource> {
        let is_it =
            |row: &&&Resource| row.kind == kind && row.group == group && row.version == version;
        catalogue::by_kind(group, version, kind).or_else(|| self.custom.iter().find(is_it).copied())
    }

    /// The resource that owns the stored objects of `group` and `plural`.
    pub fn stored(&self, group: &str, plural: &str) -> Option<&'static Resource> {
        catalogue::stored(group, plural).or_else(|| self.stored.get(&(group, plural)).copied())
    }

    /// The groups that have a resource, in the order of discovery.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        let built_in = catalogue::groups().map(|group| -> &Group { group });
        built_in.chain(&self.groups)
    }

    /// The resources of one group version, in the order of discovery.
    pub fn of_version(
        &self,
        group: &str,
        version: &str,
    ) -> impl Iterator<Item = &'static Resource> {
        let own = move |row: &&'static Resource| row.group == group && row.version == version;
        let custom = self.custom.iter().copied().filter(own);
        catalogue::of_version(group, version).chain(custom)
    }

    /// Every resource, in the order of discovery.
    pub fn all(&self) -> impl Iterator<Item = &'static Resource> {
        catalogue::all().iter().chain(self.custom.iter().copied())
    }

    /// The resources that definitions brought.
    pub fn custom(&self) -> &[&'static Resource] {
        &self.custom
    }
}
