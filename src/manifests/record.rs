//! What was done for a file: a ConfigMap in `kube-system`.
//!
//! In the cluster and not beside the files, because it is about the cluster: it is in each
//! snapshot of the store and goes back with it, and `kubectl get configmap -l
//! manifests.coracle/file` shows what became of the files. A ConfigMap, because that is a kind
//! that every client knows.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use ring::digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

pub const NAMESPACE: &str = "kube-system";
pub const LABEL: &str = "manifests.coracle/file";
const PREFIX: &str = "coracle-manifest-";
/// Enough that no two files share a name.
const HASH_BYTES: usize = 5;
/// So that the label and the name are short enough, whatever the file is called.
const NAME_BYTES_MAX: usize = 40;

const FILE: &str = "file";
const OBJECTS: &str = "objects";
const FAILURE: &str = "failure";

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    pub api_version: String,
    pub kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub name: String,
}

/// Group, kind, namespace and name.
pub type Key<'a> = (&'a str, &'a str, &'a str, &'a str);

impl Identity {
    /// What tells objects apart: they are the same in all versions of their kind.
    pub fn key(&self) -> Key<'_> {
        let (group, _version) = self.api_version.split_once('/').unwrap_or_default();
        (group, &self.kind, &self.namespace, &self.name)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// One object that a file said.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    #[serde(flatten)]
    pub identity: Identity,
    /// Empty before it is made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// False for what was there already: it is changed, and never deleted.
    #[serde(rename = "made")]
    pub is_made: bool,
}

impl Entry {
    pub fn new(identity: Identity, uid: &str, is_made: bool) -> Self {
        Self {
            identity,
            uid: uid.to_owned(),
            is_made,
        }
    }
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Record {
    pub file: String,
    pub entries: Vec<Entry>,
    /// Why the file is not applied as a whole; empty when it is.
    pub failure: String,
}

impl Record {
    pub fn of(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            ..Self::default()
        }
    }

    pub fn entry(&self, identity: &Identity) -> Option<&Entry> {
        let mut entries = self.entries.iter();
        entries.find(|one| one.identity.key() == identity.key())
    }

    /// That it is made is written down, and that it was not there before.
    pub fn foresees(&self, identity: &Identity) -> bool {
        let entry = self.entry(identity);
        entry.is_some_and(|entry| entry.is_made && entry.uid.is_empty())
    }

    pub fn put(&mut self, entry: Entry) {
        let mut known = self.entries.iter_mut();
        match known.find(|one| one.identity.key() == entry.identity.key()) {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
    }

    /// From the file's name, with a hash for what cannot be in a name.
    pub fn name(&self) -> String {
        let hash = digest::digest(&digest::SHA256, self.file.as_bytes());
        let hash = hex::encode(&hash.as_ref()[..HASH_BYTES]);
        let plain = |letter: char| match letter.to_ascii_lowercase() {
            letter if letter.is_ascii_alphanumeric() => letter,
            _ => '-',
        };
        let stem: String = self.file.chars().take(NAME_BYTES_MAX).map(plain).collect();
        let stem = match stem.trim_matches('-') {
            "" => "file",
            stem => stem,
        };
        format!("{PREFIX}{stem}-{hash}")
    }

    pub fn to_config_map(&self) -> ConfigMap {
        let name = self.name();
        let label = name.trim_start_matches(PREFIX).to_owned();
        let mut data = BTreeMap::from([
            (FILE.to_owned(), self.file.clone()),
            (
                OBJECTS.to_owned(),
                serde_json::to_string(&self.entries).unwrap_or_default(),
            ),
        ]);
        if !self.failure.is_empty() {
            data.insert(FAILURE.to_owned(), self.failure.clone());
        }
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(NAMESPACE.to_owned()),
                labels: Some(BTreeMap::from([(LABEL.to_owned(), label)])),
                ..ObjectMeta::default()
            },
            data: Some(data),
            ..ConfigMap::default()
        }
    }

    /// None for one that somebody else wrote, or wrote over: nothing is deleted on its word.
    pub fn from_config_map(map: &ConfigMap) -> Option<Self> {
        let data = map.data.as_ref()?;
        let record = Self {
            file: data.get(FILE)?.clone(),
            entries: serde_json::from_str(data.get(OBJECTS)?).ok()?,
            failure: data.get(FAILURE).cloned().unwrap_or_default(),
        };
        (map.metadata.name.as_deref() == Some(record.name().as_str())).then_some(record)
    }
}

#[cfg(test)]
mod tests;
