//! `metadata.managedFields`: who manages what, read and written as upstream does.

use super::set::Set;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Upstream's bound on the entries of managers that update: older ones are merged.
const UPDATE_MANAGERS_MAX: usize = 10;
/// Who manages what the merged entries did.
const ANCIENT: &str = "ancient-changes";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn text(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// What one manager manages. Identity is manager, operation and subresource, and for an update
/// the version too.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    pub manager: Cow<'a, str>,
    pub operation: Operation,
    /// The version in which `set` is meant.
    pub api_version: Cow<'a, str>,
    pub subresource: Cow<'a, str>,
    /// RFC 3339, in UTC.
    pub time: Option<Cow<'a, str>>,
    pub set: Set<'a>,
}

impl Entry<'_> {
    pub fn is_same_manager(&self, other: &Entry<'_>) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// The identity as upstream has it, by which managers are sorted.
    pub fn identity(&self) -> String {
        let mut text = String::from("{");
        let mut add = |name: &str, value: &str| {
            if !value.is_empty() {
                let comma = if text.len() > 1 { "," } else { "" };
                text.push_str(&format!("{comma}\"{name}\":"));
                super::value::write_string(&mut text, value);
            }
        };
        add("manager", &self.manager);
        add("operation", self.operation.text());
        if self.operation == Operation::Update {
            add("apiVersion", &self.api_version);
        }
        add("subresource", &self.subresource);
        text.push('}');
        text
    }

    fn to_value(&self) -> Value {
        let mut entry = Map::new();
        if !self.manager.is_empty() {
            entry.insert("manager".into(), self.manager.as_ref().into());
        }
        entry.insert("operation".into(), self.operation.text().into());
        entry.insert("apiVersion".into(), self.api_version.as_ref().into());
        if let Some(time) = &self.time {
            entry.insert("time".into(), time.as_ref().into());
        }
        entry.insert("fieldsType".into(), "FieldsV1".into());
        entry.insert("fieldsV1".into(), self.set.to_fields());
        if !self.subresource.is_empty() {
            entry.insert("subresource".into(), self.subresource.as_ref().into());
        }
        Value::Object(entry)
    }
}

/// All entries of an object, at most one a manager.
#[derive(Clone, Debug, Default)]
pub struct Managed<'a>(pub Vec<Entry<'a>>);

impl<'a> Managed<'a> {
    /// Reads the list; an error says what upstream says.
    pub fn read(list: Option<&'a Value>) -> Result<Self, String> {
        let mut managed = Self::default();
        let items = list.and_then(Value::as_array);
        for (index, item) in items.into_iter().flatten().enumerate() {
            managed.put(read_entry(index, item)?);
        }
        Ok(managed)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds an entry, in place of the one of the same manager.
    pub fn put(&mut self, entry: Entry<'a>) {
        match self.0.iter_mut().find(|one| one.is_same_manager(&entry)) {
            Some(one) => *one = entry,
            None => self.0.push(entry),
        }
    }

    pub fn find(&self, like: &Entry<'_>) -> Option<&Entry<'a>> {
        self.0.iter().find(|one| one.is_same_manager(like))
    }

    pub fn take(&mut self, like: &Entry<'_>) -> Option<Entry<'a>> {
        let index = self.0.iter().position(|one| one.is_same_manager(like))?;
        Some(self.0.remove(index))
    }

    pub fn drop_empty(&mut self) {
        self.0.retain(|entry| !entry.set.is_empty());
    }

    /// The list as it is stored, in upstream's order; `None` when nobody manages anything.
    pub fn into_value(mut self) -> Option<Value> {
        if self.is_empty() {
            return None;
        }
        self.0.sort_by(|a, b| {
            let time = |entry: &Entry<'_>| entry.time.as_deref().unwrap_or("").to_owned();
            a.operation
                .cmp(&b.operation)
                .then_with(|| time(a).cmp(&time(b)))
                .then_with(|| a.manager.cmp(&b.manager))
                .then_with(|| a.api_version.cmp(&b.api_version))
                .then_with(|| a.subresource.cmp(&b.subresource))
        });
        Some(self.0.iter().map(Entry::to_value).collect())
    }

    /// Merges the oldest entries of managers that update, by version, until there are few enough.
    pub fn cap(&mut self) {
        let is_update = |entry: &&Entry<'_>| entry.operation == Operation::Update;
        let mut count = self.0.iter().filter(is_update).count();
        if count <= UPDATE_MANAGERS_MAX {
            return;
        }
        let mut oldest: Vec<Entry<'a>> = self.0.iter().filter(is_update).cloned().collect();
        oldest.sort_by_cached_key(|entry| {
            let time = entry.time.as_deref().unwrap_or("").to_owned();
            (time, entry.identity())
        });
        let mut firsts: Vec<Entry<'a>> = Vec::new();
        for entry in oldest {
            if count <= UPDATE_MANAGERS_MAX {
                return;
            }
            let known = firsts
                .iter()
                .find(|one| one.api_version == entry.api_version);
            let Some(first) = known else {
                firsts.push(entry);
                continue;
            };
            let bucket = Entry {
                manager: ANCIENT.into(),
                subresource: "".into(),
                ..entry.clone()
            };
            let first = first.clone();
            let merged = self.take(&bucket).or_else(|| self.take(&first));
            self.take(&entry);
            let set = merged.map_or_else(Set::default, |one| one.set);
            self.put(Entry {
                set: entry.set.union(set),
                ..bucket
            });
            count -= 1;
        }
    }
}

fn read_entry(index: usize, item: &Value) -> Result<Entry<'_>, String> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or("");
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => {
            return Err(format!(
                "missing fieldsType in managed fields entry {index}"
            ));
        }
        other => {
            return Err(format!(
                "invalid fieldsType {other:?} in managed fields entry {index}"
            ));
        }
    }
    let set = match item.get("fieldsV1") {
        Some(fields) => Set::from_fields(fields)
            .map_err(|error| format!("error decoding versioned set: {error}"))?,
        None => Set::default(),
    };
    let time = item.get("time").and_then(Value::as_str);
    Ok(Entry {
        manager: text("manager").into(),
        operation,
        api_version: api_version.into(),
        subresource: text("subresource").into(),
        time: time.map(Cow::Borrowed),
        set,
    })
}

/// True for a list by which a client asks to forget all managers.
pub fn is_reset(list: &Value) -> bool {
    match list.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([one]) => *one == json!({}),
        _ => false,
    }
}
