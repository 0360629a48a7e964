//! Objects in the store: where they are, how they are written, and how they are read back.
//!
//! An object is serialized once, when it is written, with a place for the revision that the store
//! assigns; what is stored is what is sent. Knows no kind.

use crate::custom::Customs;
use crate::view;
use bytes::Bytes;
use coracle_api::apply;
use coracle_api::catalogue;
use coracle_api::custom::Kinds;
use coracle_api::object::{Object, ObjectKey};
use coracle_api::resource::{Durability, Resource};
use coracle_api::status::{Status, Subject};
use coracle_store::{
    Change, CommitError, Entry, Expect, Revision, Snapshot, Stamped, Store, Write,
};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

pub mod glance; // What can be read off stored bytes.

/// As upstream's cache: a request for a state that is not there yet waits so long.
const FRESH_MAX: Duration = Duration::from_secs(3);

/// Where a resource's objects are. Every request asks, so each name is made once.
pub fn partition(resource: &Resource) -> Arc<str> {
    static NAMES: LazyLock<HashMap<(&str, &str), Arc<str>>> = LazyLock::new(|| {
        let rows = catalogue::all().iter();
        rows.map(|row| (row.stored_as, named(row.stored_as)))
            .collect()
    });
    fn named((group, plural): (&str, &str)) -> Arc<str> {
        view::partition(group, plural).into()
    }
    NAMES
        .get(&resource.stored_as)
        .map_or_else(|| named(resource.stored_as), Arc::clone)
}

pub fn key(namespace: &str, name: &str) -> String {
    ObjectKey::new(namespace, name).to_string()
}

/// The prefix of the keys of a namespace; empty for all.
pub fn prefix(namespace: &str) -> String {
    if namespace.is_empty() {
        String::new()
    } else {
        format!("{namespace}/")
    }
}

pub fn subject<'a>(resource: &'a Resource, name: &'a str) -> Subject<'a> {
    Subject {
        group: resource.group,
        resource: resource.plural,
        name,
    }
}

/// As a validation error names its object: by kind.
pub fn kind_subject<'a>(resource: &'a Resource, name: &'a str) -> Subject<'a> {
    Subject {
        // A second view is validated in the form that is stored.
        group: resource.stored_as.0,
        resource: resource.kind,
        name,
    }
}

/// Serializes an object: kind, apiVersion and metadata first, `resourceVersion` first within that
/// and empty; gives where it goes.
pub fn encode(object: &Object) -> (Vec<u8>, usize) {
    const FIRST: [&str; 3] = ["kind", "apiVersion", "metadata"];
    let mut out = Vec::with_capacity(1024);
    let mut place = 0;
    out.push(b'{');
    let root = object.root();
    let first = FIRST.iter().filter_map(|name| root.get_key_value(*name));
    let rest = root
        .iter()
        .filter(|(name, _)| !FIRST.contains(&name.as_str()));
    for (name, value) in first.chain(rest) {
        if out.len() > 1 {
            out.push(b',');
        }
        write_text(&mut out, name);
        out.push(b':');
        match value {
            Value::Object(metadata) if name == "metadata" => {
                place = write_metadata(&mut out, metadata);
            }
            value => write_value(&mut out, value),
        }
    }
    out.push(b'}');
    (out, place)
}

fn write_metadata(out: &mut Vec<u8>, metadata: &Map<String, Value>) -> usize {
    out.extend_from_slice(b"{\"resourceVersion\":\"");
    let place = out.len();
    out.push(b'"');
    for (name, value) in metadata {
        if name == "resourceVersion" {
            continue;
        }
        out.push(b',');
        write_text(out, name);
        out.push(b':');
        if name == "managedFields" {
            apply::order::write_managed_fields(out, value);
        } else {
            write_value(out, value);
        }
    }
    out.push(b'}');
    place
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a text always serializes into memory");
}

fn write_value(out: &mut Vec<u8>, value: &Value) {
    serde_json::to_writer(out, value).expect("a JSON value always serializes into memory");
}

/// An object with the revision at which it was last changed.
#[derive(Clone, Debug)]
pub struct Stored {
    pub object: Object,
    pub revision: Revision,
}

/// The objects of all resources.
#[derive(Clone, Debug)]
pub struct Registry {
    pub store: Store,
    pub customs: Arc<Customs>,
}

impl Registry {
    pub fn new(store: Store) -> Self {
        Self {
            store,
            customs: Arc::default(),
        }
    }

    /// All kinds that there are now.
    pub fn kinds(&self) -> Arc<Kinds> {
        self.customs.kinds(&self.store)
    }

    /// The row of a resource.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
        self.customs.find(&self.store, group, version, plural)
    }

    pub fn snapshot(&self, resource: &Resource) -> Snapshot {
        self.store.snapshot(&partition(resource))
    }

    /// The newest state, and as new as a revision at least. A client that saw a newer one is given
    /// a moment; then it is told the newest there is.
    pub async fn snapshot_not_older(
        &self,
        resource: &Resource,
        least: Revision,
    ) -> Result<Snapshot, Revision> {
        if self.store.revision() < least {
            // Late or not, what counts is where the store is after that.
            drop(tokio::time::timeout(FRESH_MAX, self.store.reach(least)).await);
        }
        let snapshot = self.snapshot(resource);
        if snapshot.revision() < least {
            return Err(snapshot.revision());
        }
        Ok(snapshot)
    }

    pub fn entry(&self, resource: &Resource, namespace: &str, name: &str) -> Option<Entry> {
        self.snapshot(resource).get(&key(namespace, name)).cloned()
    }

    /// The object in the form of this resource's version.
    pub fn get(&self, resource: &Resource, namespace: &str, name: &str) -> Result<Stored, Status> {
        let not_found = || Status::not_found(subject(resource, name));
        let entry = self
            .entry(resource, namespace, name)
            .ok_or_else(not_found)?;
        let object = decode(resource, &entry.value).ok_or_else(|| {
            Status::internal(format!("the stored object {name:?} cannot be read"))
        })?;
        Ok(Stored {
            object,
            revision: entry.modified,
        })
    }

    /// Writes an object; gives back its bytes as they are stored, and its revision.
    pub async fn put(
        &self,
        resource: &Resource,
        object: &Object,
        expect: Expect,
        durability: Durability,
    ) -> Result<Revision, Refusal> {
        self.commit(resource, object, expect, durability, Change::Put)
            .await
    }

    /// Deletes an object; `last` is its last state, for those who watch.
    pub async fn delete(
        &self,
        resource: &Resource,
        last: &Object,
        expect: Expect,
        durability: Durability,
    ) -> Result<Revision, Refusal> {
        self.commit(resource, last, expect, durability, Change::Delete)
            .await
    }

    async fn commit(
        &self,
        resource: &Resource,
        object: &Object,
        expect: Expect,
        durability: Durability,
        change: fn(Stamped) -> Change,
    ) -> Result<Revision, Refusal> {
        let object = self.to_be_stored(resource, object).await?;
        let write = prepared(resource, &object, expect, durability, change);
        self.store.commit(write).await.map_err(Refusal::from)
    }

    /// An object in the version in which it is stored, where a webhook knows what that is.
    async fn to_be_stored<'o>(
        &self,
        resource: &Resource,
        object: &'o Object,
    ) -> Result<Cow<'o, Object>, Refusal> {
        let Some(converter) = self.customs.converter() else {
            return Ok(Cow::Borrowed(object));
        };
        let converted = converter.to_be_stored(resource, object).await;
        converted.map_err(|status| Refusal::Denied(Box::new(status)))
    }

    /// Writes an object together with others: all of it is done, or nothing.
    pub async fn put_beside(
        &self,
        resource: &Resource,
        object: &Object,
        expect: Expect,
        durability: Durability,
        others: &[Write],
    ) -> Result<Revision, Refusal> {
        let object = self.to_be_stored(resource, object).await?;
        let own = prepared(resource, &object, expect, durability, Change::Put);
        let mut group = vec![own];
        group.extend_from_slice(others);
        match self.store.commit_all(group).await {
            Ok(revisions) => Ok(revisions[0]),
            Err(refused) if refused.place == 0 => Err(refused.error.into()),
            Err(_) => Err(Refusal::Beside),
        }
    }
}

/// A put of an object, to be done beside another.
pub fn put_write(resource: &Resource, object: &Object, expect: Expect) -> Write {
    prepared(resource, object, expect, Durability::Synced, Change::Put)
}

fn prepared(
    resource: &Resource,
    object: &Object,
    expect: Expect,
    durability: Durability,
    change: fn(Stamped) -> Change,
) -> Write {
    let key = key(object.namespace(), object.name());
    let stamped = if is_second_view(resource) {
        let mut stored = object.clone();
        resource.rules.to_stored(&mut stored);
        encode(&stored)
    } else {
        encode(object)
    };
    let (value, place) = stamped;
    Write {
        partition: partition(resource),
        key: Arc::from(key),
        change: change(Stamped {
            value,
            revision_at: Some(place),
        }),
        expect,
        durability: match durability {
            Durability::Synced => coracle_store::Durability::Synced,
            Durability::Lazy => coracle_store::Durability::Lazy,
            Durability::Renewal => coracle_store::Durability::Renewal,
        },
    }
}

/// Why a write was not done, as far as it matters to the one who asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    #[error("the object exists")]
    Exists,
    #[error("the object does not exist")]
    Absent,
    #[error("the object was changed meanwhile")]
    Changed,
    #[error("what was to be written beside it was changed meanwhile")]
    Beside,
    /// The answer is known already.
    #[error("{0}")]
    Denied(Box<Status>),
    #[error("{0}")]
    Failed(CommitError),
}

impl From<CommitError> for Refusal {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Exists { .. } => Self::Exists,
            CommitError::NotFound => Self::Absent,
            CommitError::Conflict { .. } => Self::Changed,
            other => Self::Failed(other),
        }
    }
}

impl Refusal {
    pub fn status(&self, resource: &Resource, name: &str) -> Status {
        let subject = subject(resource, name);
        match self {
            Self::Exists => Status::already_exists(subject),
            Self::Absent => Status::not_found(subject),
            Self::Changed | Self::Beside => Status::modified(subject),
            Self::Denied(status) => (**status).clone(),
            Self::Failed(CommitError::Closed) => {
                Status::service_unavailable("the server is shutting down")
            }
            Self::Failed(error @ CommitError::TooLarge { .. }) => {
                Status::request_too_large(error.to_string())
            }
            Self::Failed(error @ CommitError::Full) => {
                Status::insufficient_storage(error.to_string())
            }
            Self::Failed(error) => Status::internal(error),
        }
    }
}

/// True for a version that shows objects which another one owns.
pub fn is_second_view(resource: &Resource) -> bool {
    resource.is_second_view
}

/// A stored object in the form of a resource's version.
pub fn decode(resource: &Resource, value: &Bytes) -> Option<Object> {
    let mut object = view::decode(value)?;
    if is_second_view(resource) {
        resource.rules.from_stored(&mut object);
    }
    Some(object)
}

#[cfg(test)]
mod tests;
