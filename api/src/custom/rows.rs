//! Rows of the catalogue that are made while the server runs.
//!
//! A row is what a built-in kind's row is, so that nobody who has one asks where it comes from. It
//! lives as long as the process: what it says of a kind (names, scope, columns) is kept once for
//! all definitions that say the same, however often they come and go. The rest of a definition,
//! its schema above all, is behind the row's rules and goes when the definition does.

use super::columns::{self, Header};
use super::rules::{Current, Custom, Siblings};
use super::version::Version;
use crate::json;
use crate::kinds::row;
use crate::object::Object;
use crate::openapi;
use crate::resource::{Column, Resource, Scope, Subresource};
use serde_json::Value;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// What rows may take together, in bytes of their texts: some tens of thousands of kinds. A server
/// that saw more different ones needs a restart before it serves another.
const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// A row itself, with its columns.
const ROW_BYTES: usize = 512;
/// A text in a list, beside its bytes: who points to it.
const LIST_ITEM_BYTES: usize = 40;
/// A column, as a row has it and as it was stated, beside the bytes of its texts.
const COLUMN_BYTES: usize = 192;

const STATUS: &[Subresource] = &[row::STATUS];
const SCALE: &[Subresource] = &[row::SCALE];
const STATUS_AND_SCALE: &[Subresource] = &[row::STATUS, row::SCALE];

/// All that a row says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Facts {
    group: String,
    version: String,
    kind: String,
    plural: String,
    singular: String,
    short_names: Vec<String>,
    categories: Vec<String>,
    is_namespaced: bool,
    has_status: bool,
    has_scale: bool,
    selectable: Vec<String>,
    columns: Vec<Header>,
    deprecation: Option<String>,
}

impl Facts {
    /// What it takes to keep them.
    fn bytes(&self) -> usize {
        let names = [
            &self.group,
            &self.version,
            &self.kind,
            &self.plural,
            &self.singular,
        ];
        let lists = [&self.short_names, &self.categories, &self.selectable];
        let in_lists = lists.into_iter().flatten();
        let columns = self.columns.iter().map(|header| {
            let texts = [
                &header.name,
                &header.kind,
                &header.format,
                &header.description,
            ];
            COLUMN_BYTES + texts.map(String::len).iter().sum::<usize>()
        });
        names.map(String::len).iter().sum::<usize>()
            + in_lists
                .map(|text| LIST_ITEM_BYTES + text.len())
                .sum::<usize>()
            + columns.sum::<usize>()
            + self.deprecation.as_ref().map_or(0, String::len)
    }
}

/// A group version's plural.
type Place = (String, String, String);

/// There is no room for another row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this server has seen too many different custom resources: it must be started again")]
pub struct TooMany;

/// All rows that were made.
#[derive(Debug, Default)]
pub struct Rows {
    rows: HashMap<Facts, &'static Resource>,
    /// Shared by all rows of one place, so that a request with an older row knows of the newest
    /// schema too.
    current: HashMap<Place, Arc<Current>>,
    siblings: HashMap<(String, String), Arc<Siblings>>,
    texts: HashMap<String, &'static str>,
    lists: HashMap<Vec<String>, &'static [&'static str]>,
    bytes: usize,
}

impl Rows {
    /// The rows of the served versions of a definition, which from now on go by it.
    pub fn of(&mut self, definition: &Object) -> Result<Vec<&'static Resource>, TooMany> {
        let mut rows = Vec::new();
        for version in Version::all(definition) {
            let facts = facts(definition, &version);
            let row = self.row(facts)?;
            self.current_of(row.group, row.version, row.plural)
                .set(Some(Arc::new(version)));
            rows.push(row);
        }
        if let Some(row) = rows.first() {
            self.siblings_of(row.group, row.plural).set(&rows);
        }
        Ok(rows)
    }

    /// Lets go what is behind a row that is served no more.
    pub fn forget(&mut self, row: &Resource) {
        self.current_of(row.group, row.version, row.plural)
            .set(None);
    }

    fn current_of(&mut self, group: &str, version: &str, plural: &str) -> Arc<Current> {
        let place = [group, version, plural].map(str::to_owned);
        let entry = self.current.entry(place.into());
        Arc::clone(entry.or_default())
    }

    fn siblings_of(&mut self, group: &str, plural: &str) -> Arc<Siblings> {
        let place = (group.to_owned(), plural.to_owned());
        Arc::clone(self.siblings.entry(place).or_default())
    }

    fn row(&mut self, facts: Facts) -> Result<&'static Resource, TooMany> {
        if let Some(row) = self.rows.get(&facts) {
            return Ok(row);
        }
        self.take(ROW_BYTES + facts.bytes())?;
        let current = self.current_of(&facts.group, &facts.version, &facts.plural);
        let siblings = self.siblings_of(&facts.group, &facts.plural);
        let mut columns = vec![row::NAME];
        for header in &facts.columns {
            columns.push(Column {
                name: self.text(&header.name)?,
                kind: self.text(&header.kind)?,
                format: self.text(&header.format)?,
                priority: header.priority,
                description: self.text(&header.description)?,
            });
        }
        let deprecation = match &facts.deprecation {
            Some(text) => Some(self.text(text)?),
            None => None,
        };
        let rules: &'static Custom = Box::leak(Box::new(Custom {
            columns: columns.leak(),
            deprecation,
            current,
            siblings,
        }));
        let model = openapi::model_name(&facts.group, &facts.version, &facts.kind);
        let (group, plural) = (self.text(&facts.group)?, self.text(&facts.plural)?);
        let row = Resource {
            group,
            version: self.text(&facts.version)?,
            kind: self.text(&facts.kind)?,
            plural,
            singular: self.text(&facts.singular)?,
            short_names: self.list(&facts.short_names)?,
            categories: self.list(&facts.categories)?,
            scope: if facts.is_namespaced {
                Scope::Namespaced
            } else {
                Scope::Cluster
            },
            verbs: row::STORED_VERBS,
            subresources: match (facts.has_status, facts.has_scale) {
                (false, false) => &[],
                (true, false) => STATUS,
                (false, true) => SCALE,
                (true, true) => STATUS_AND_SCALE,
            },
            selectable_fields: self.list(&facts.selectable)?,
            schema: self.text(&model)?,
            stored_as: (group, plural),
            is_second_view: true,
            rules,
        };
        let row: &'static Resource = Box::leak(Box::new(row));
        self.rows.insert(facts, row);
        Ok(row)
    }

    pub fn text(&mut self, text: &str) -> Result<&'static str, TooMany> {
        if let Some(known) = self.texts.get(text) {
            return Ok(known);
        }
        self.take(2 * text.len())?;
        let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
        self.texts.insert(text.to_owned(), kept);
        Ok(kept)
    }

    pub fn list(&mut self, texts: &[String]) -> Result<&'static [&'static str], TooMany> {
        if let Some(known) = self.lists.get(texts) {
            return Ok(known);
        }
        self.take(texts.iter().map(|text| LIST_ITEM_BYTES + text.len()).sum())?;
        let mut kept = Vec::with_capacity(texts.len());
        for text in texts {
            kept.push(self.text(text)?);
        }
        let kept: &'static [&'static str] = kept.leak();
        self.lists.insert(texts.to_vec(), kept);
        Ok(kept)
    }

    fn take(&mut self, bytes: usize) -> Result<(), TooMany> {
        if self.bytes + bytes > TEXT_BYTES_MAX {
            return Err(TooMany);
        }
        self.bytes += bytes;
        Ok(())
    }
}

fn facts(definition: &Object, version: &Version) -> Facts {
    let name = |name: &str| {
        definition
            .str(&["status", "acceptedNames", name])
            .to_owned()
    };
    let names = |name: &str| texts(definition.list(&["status", "acceptedNames", name]));
    let (group, own) = version.api_version.split_once('/').unwrap_or_default();
    let versions = definition.list(&["spec", "versions"]);
    let found = versions.iter().find(|one| json::text(one, "name") == own);
    let stated = found.unwrap_or(&json::NULL);
    let selectable = json::list(stated, "selectableFields").iter();
    Facts {
        group: group.to_owned(),
        version: own.to_owned(),
        kind: name("kind"),
        plural: name("plural"),
        singular: name("singular"),
        short_names: names("shortNames"),
        categories: names("categories"),
        is_namespaced: definition.str(&["spec", "scope"]) == "Namespaced",
        has_status: version.has_status,
        has_scale: version.scale.is_some(),
        selectable: selectable
            .map(|one| {
                json::text(one, "jsonPath")
                    .trim_start_matches('.')
                    .to_owned()
            })
            .collect(),
        columns: columns::headers(stated),
        deprecation: deprecation(definition, stated),
    }
}

fn texts(list: &[Value]) -> Vec<String> {
    let texts = list.iter().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// What every request for a deprecated version is warned of.
fn deprecation(definition: &Object, version: &Value) -> Option<String> {
    if !json::flag(version, "deprecated") {
        return None;
    }
    if let Some(own) = json::some(version, "deprecationWarning").and_then(Value::as_str) {
        return Some(own.to_owned());
    }
    let group = definition.str(&["spec", "group"]);
    let kind = definition.str(&["spec", "names", "kind"]);
    let name = json::text(version, "name");
    let own = super::order::priority(name);
    let others = definition.list(&["spec", "versions"]).iter();
    let newest = others
        .filter(|one| json::flag(one, "served") && !json::flag(one, "deprecated"))
        .map(|one| json::text(one, "name"))
        .filter(|other| super::order::priority(other) > own)
        .max_by_key(|other| super::order::priority(other));
    let instead = newest.map(|newest| format!("; use {group}/{newest} {kind}"));
    let instead = instead.unwrap_or_default();
    Some(format!("{group}/{name} {kind} is deprecated{instead}"))
}
