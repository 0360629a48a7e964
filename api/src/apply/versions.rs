//! One object in the versions that its managers wrote it in.

use super::Writer;
use super::compare::Comparison;
use super::managed::{Entry, Managed};
use super::types::{Place, Types};
use crate::catalogue;
use crate::object::Object;
use crate::schema::{Shape, schema};
use serde_json::{Map, Value};

/// The two states of an object in a version other than the one of the write.
struct Versioned<'s> {
    root: Place<'s>,
    before: Map<String, Value>,
    after: Map<String, Value>,
}

/// All versions that managers have, with the states in them; `None` for one that is no more.
pub struct Versions<'s> {
    types: Types<'s>,
    own: (String, Option<Place<'s>>),
    others: Vec<(String, Option<Versioned<'s>>)>,
}

impl<'s> Versions<'s> {
    pub fn of(
        writer: &'s Writer<'_>,
        managed: &Managed<'_>,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
    ) -> Self {
        let mut others: Vec<(String, Option<Versioned<'_>>)> = Vec::new();
        for entry in &managed.0 {
            let version = entry.api_version.as_ref();
            let is_known =
                version == writer.api_version || others.iter().any(|(one, _)| one == version);
            if !is_known {
                others.push((
                    version.to_owned(),
                    versioned(writer, version, before, after),
                ));
            }
        }
        Self {
            types: writer.types(),
            own: (writer.api_version.to_owned(), writer.root()),
            others,
        }
    }

    fn root(&self, version: &str) -> Option<Place<'s>> {
        if self.own.0 == version {
            return self.own.1;
        }
        let found = self.others.iter().find(|(one, _)| one == version)?;
        found.1.as_ref().map(|one| one.root)
    }

    /// The managers with their sets as they read under the schema of now, without those whose
    /// version is no more.
    pub fn conformed<'a>(&self, managed: Managed<'a>) -> Managed<'a> {
        let types = self.types;
        let entries = managed.0.into_iter().filter_map(|entry| {
            let root = self.root(&entry.api_version)?;
            let conformed = types.conformed(root, &entry.set);
            Some(match conformed {
                Some(set) => Entry { set, ..entry },
                None => entry,
            })
        });
        Managed(entries.collect())
    }

    /// What changed, in each version. `own` is the comparison in the version of the write.
    pub fn comparisons<'a>(
        &'a self,
        writer: &Writer<'_>,
        own: &'a Comparison<'a>,
    ) -> Comparisons<'a> {
        let types = self.types;
        let others = self.others.iter().filter_map(|(version, one)| {
            let one = one.as_ref()?;
            let compared = types.compare(one.root, &one.before, &one.after);
            Some((version.as_str(), writer.filtered(compared)))
        });
        Comparisons {
            own: (&self.own.0, own),
            others: others.collect(),
        }
    }
}

/// What a write changes, in all versions that are served.
#[derive(Debug)]
pub struct Comparisons<'a> {
    own: (&'a str, &'a Comparison<'a>),
    others: Vec<(&'a str, Comparison<'a>)>,
}

impl<'a> Comparisons<'a> {
    pub fn of(&self, version: &str) -> Option<&Comparison<'a>> {
        if self.own.0 == version {
            return Some(self.own.1);
        }
        let found = self.others.iter().find(|(one, _)| *one == version);
        found.map(|(_, compared)| compared)
    }
}

fn versioned<'s>(
    writer: &'s Writer<'_>,
    version: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Option<Versioned<'s>> {
    let from = writer.api_version;
    Some(Versioned {
        root: writer.root_of(version)?,
        before: writer.convert(from, version, before)?,
        after: writer.convert(from, version, after)?,
    })
}

impl Writer<'_> {
    /// The type of the kind in a version.
    pub(super) fn root_of(&self, api_version: &str) -> Option<Place<'_>> {
        let id = match &self.family {
            Some(family) => family.root(api_version)?,
            None => schema().find(row(api_version, self.kind)?.schema)?,
        };
        Some(Place::Bare(Shape::Type(id)))
    }

    /// An object of the kind in another version; `None` when one of the versions is not served.
    pub(super) fn convert(
        &self,
        from: &str,
        to: &str,
        object: &Map<String, Value>,
    ) -> Option<Map<String, Value>> {
        let Some(family) = &self.family else {
            return convert((from, self.kind), to, object);
        };
        family.root(from).and(family.root(to))?;
        let mut object = object.clone();
        object.insert("apiVersion".to_owned(), to.into());
        Some(object)
    }
}

fn row(api_version: &str, kind: &str) -> Option<&'static crate::resource::Resource> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    catalogue::by_kind(group, version, kind)
}

/// An object of a built-in kind in another version.
fn convert(
    (from, kind): (&str, &str),
    to: &str,
    object: &Map<String, Value>,
) -> Option<Map<String, Value>> {
    let (from, target) = (row(from, kind)?, row(to, kind)?);
    if from.stored_as != target.stored_as {
        return None;
    }
    let mut object = Object::from_value(Value::Object(object.clone()))?;
    if from.is_second_view {
        from.rules.to_stored(&mut object);
    }
    if target.is_second_view {
        target.rules.from_stored(&mut object);
    }
    object.set(&["apiVersion"], to.into());
    Some(std::mem::take(object.root_mut()))
}
