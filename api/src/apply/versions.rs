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
struct Versioned {
    root: Place<'static>,
    before: Map<String, Value>,
    after: Map<String, Value>,
}

/// All versions that managers have, with the states in them; `None` for one that is no more.
pub struct Versions {
    own: (String, Option<Place<'static>>),
    others: Vec<(String, Option<Versioned>)>,
}

impl Versions {
    pub fn of(
        writer: &Writer<'_>,
        managed: &Managed<'_>,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
    ) -> Self {
        let mut others: Vec<(String, Option<Versioned>)> = Vec::new();
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
            own: (writer.api_version.to_owned(), writer.root()),
            others,
        }
    }

    fn root(&self, version: &str) -> Option<Place<'static>> {
        if self.own.0 == version {
            return self.own.1;
        }
        let found = self.others.iter().find(|(one, _)| one == version)?;
        found.1.as_ref().map(|one| one.root)
    }

    /// The managers with their sets as they read under the schema of now, without those whose
    /// version is no more.
    pub fn conformed<'a>(&self, managed: Managed<'a>) -> Managed<'a> {
        let types = Types { schema: schema() };
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
        let types = Types { schema: schema() };
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

fn versioned(
    writer: &Writer<'_>,
    version: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Option<Versioned> {
    let from = (writer.api_version, writer.kind);
    Some(Versioned {
        root: root_of(version, writer.kind)?,
        before: convert(from, version, before)?,
        after: convert(from, version, after)?,
    })
}

/// The type of a kind in a version.
pub fn root_of(api_version: &str, kind: &str) -> Option<Place<'static>> {
    let resource = row(api_version, kind)?;
    let id = schema().find(resource.schema)?;
    Some(Place::Bare(Shape::Type(id)))
}

fn row(api_version: &str, kind: &str) -> Option<&'static crate::resource::Resource> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    catalogue::by_kind(group, version, kind)
}

/// An object of a kind in another version; `None` when one of the versions is not served.
pub fn convert(
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
