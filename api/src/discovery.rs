//! Discovery documents from the catalogue: the legacy ones, one a level, and aggregated v2.
//!
//! Pure; the caller negotiates with [`aggregated_form`] and says which kinds there are.

use crate::catalogue::Group;
use crate::custom::{self, Kinds};
use crate::protobuf::{self, ProtobufError};
use crate::resource::{Resource, Subresource};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// What a document is encoded in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Json,
    Yaml,
    Protobuf,
}

impl Form {
    fn of_media_type(name: &str) -> Option<Self> {
        Some(match name {
            "application/json" | "application/*" | "*/*" => Self::Json,
            "application/yaml" => Self::Yaml,
            crate::protobuf::MEDIA_TYPE => Self::Protobuf,
            _ => return None,
        })
    }

    /// Content type of aggregated discovery.
    pub fn aggregated(self) -> &'static str {
        match self {
            Self::Json => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            Self::Yaml => "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            Self::Protobuf => {
                "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;\
                 as=APIGroupDiscoveryList"
            }
        }
    }
}

/// How many media ranges of an `Accept` header are looked at; kubectl sends three.
const MEDIA_RANGES_MAX: usize = 32;

/// The form of aggregated discovery that an `Accept` header asks for, wherever in it; `None` when
/// it asks for the legacy documents alone.
pub fn aggregated_form(accept: &str) -> Option<Form> {
    let ranges = accept.split(',').take(MEDIA_RANGES_MAX);
    let mut ranges: Vec<(u16, &str)> = ranges.map(|range| (weight(range), range)).collect();
    ranges.sort_by_key(|range| std::cmp::Reverse(range.0));
    ranges.into_iter().find_map(|(_, range)| {
        let mut parts = range.split(';').map(str::trim);
        let form = Form::of_media_type(parts.next()?)?;
        let mut asked = ["", "", ""];
        for part in parts {
            for (slot, name) in asked.iter_mut().zip(["g=", "v=", "as="]) {
                *slot = part.strip_prefix(name).unwrap_or(*slot);
            }
        }
        let wanted = ["apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"];
        (asked == wanted).then_some(form)
    })
}

/// Thousandths of `q`.
pub(crate) fn weight(range: &str) -> u16 {
    let quality = range
        .split(';')
        .find_map(|part| part.trim().strip_prefix("q="));
    let quality = quality
        .and_then(|text| text.parse::<f32>().ok())
        .unwrap_or(1.0);
    (quality.clamp(0.0, 1.0) * 1000.0) as u16
}

/// `/api`. `server_address` is `host:port` of this server.
pub fn api_versions(server_address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [
            { "clientCIDR": "0.0.0.0/0", "serverAddress": server_address },
        ],
    })
}

/// `/apis`.
pub fn group_list(kinds: &Kinds) -> Value {
    let groups = kinds.groups().filter(|group| !group.name.is_empty());
    json!({
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": groups.map(|group| group_entry(kinds, group)).collect::<Vec<_>>(),
    })
}

/// `/apis/GROUP`.
pub fn group(kinds: &Kinds, name: &str) -> Option<Value> {
    if name.is_empty() {
        return None;
    }
    let mut entry = group_entry(kinds, kinds.groups().find(|group| group.name == name)?);
    entry["kind"] = "APIGroup".into();
    entry["apiVersion"] = "v1".into();
    Some(entry)
}

fn group_entry(kinds: &Kinds, group: &Group) -> Value {
    let versions: Vec<Value> = served_versions(kinds, group)
        .map(|version| {
            json!({ "groupVersion": format!("{}/{version}", group.name), "version": version })
        })
        .collect();
    json!({
        "name": group.name,
        "preferredVersion": versions.first(),
        "versions": versions,
    })
}

/// The versions of a group that have a resource, the preferred one first.
fn served_versions(kinds: &Kinds, group: &Group) -> impl Iterator<Item = &'static str> {
    let name = group.name;
    let served = move |version: &&str| kinds.of_version(name, version).next().is_some();
    group.versions.iter().copied().filter(served)
}

/// `/api/v1` (empty group) and `/apis/GROUP/VERSION`. `hash` is SHA-256.
pub fn resource_list(kinds: &Kinds, group: &str, version: &str, hash: Hash) -> Option<Value> {
    let mut resources = Vec::new();
    for row in kinds.of_version(group, version) {
        resources.push(resource_entry(kinds, row, hash));
        resources.extend(
            row.subresources
                .iter()
                .map(|sub| subresource_entry(row, sub)),
        );
    }
    if resources.is_empty() {
        return None;
    }
    resources.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    let mut list = json!({
        "kind": "APIResourceList",
        "groupVersion": group_version(group, version),
        "resources": resources,
    });
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    Some(list)
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

fn sorted(verbs: &[&str]) -> Vec<String> {
    let mut verbs: Vec<String> = verbs.iter().map(|verb| (*verb).to_owned()).collect();
    verbs.sort_unstable();
    verbs
}

/// A hash of bytes: this crate brings none.
pub type Hash = fn(&[u8]) -> Vec<u8>;

/// How many bytes of the hash a storage version is told by.
const STORAGE_HASH_BYTES: usize = 8;

/// Tells clients when objects are stored in another version: of what is stored alone.
fn storage_version_hash(kinds: &Kinds, row: &Resource, hash: Hash) -> Option<String> {
    if !row.verbs.contains(&"update") {
        return None;
    }
    let stored = kinds.stored(row.stored_as.0, row.stored_as.1)?;
    let name = [stored.group, stored.version, stored.kind].join("/");
    let hash = hash(name.as_bytes());
    Some(BASE64_STANDARD.encode(hash.get(..STORAGE_HASH_BYTES)?))
}

/// What is told of a kind whose definition is being deleted.
const ENDING_VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "watch"];

fn verbs(row: &Resource) -> &'static [&'static str] {
    if custom::is_ending(row) {
        ENDING_VERBS
    } else {
        row.verbs
    }
}

fn resource_entry(kinds: &Kinds, row: &Resource, hash: Hash) -> Value {
    let mut entry = json!({
        "name": row.plural,
        "singularName": row.singular,
        "namespaced": row.is_namespaced(),
        "kind": row.kind,
        "verbs": sorted(verbs(row)),
    });
    if !row.short_names.is_empty() {
        entry["shortNames"] = row.short_names.into();
    }
    if !row.categories.is_empty() {
        entry["categories"] = row.categories.into();
    }
    if let Some(hash) = storage_version_hash(kinds, row, hash) {
        entry["storageVersionHash"] = hash.into();
    }
    entry
}

fn subresource_entry(row: &Resource, sub: &Subresource) -> Value {
    let mut entry = json!({
        "name": format!("{}/{}", row.plural, sub.name),
        "singularName": "",
        "namespaced": row.is_namespaced(),
        "kind": sub.body.map_or(row.kind, |body| body.2),
        "verbs": sorted(sub.verbs),
    });
    if let Some((group, version, _)) = sub
        .body
        .filter(|body| (body.0, body.1) != (row.group, row.version))
    {
        entry["group"] = group.into();
        entry["version"] = version.into();
    }
    entry
}

/// Aggregated discovery of `/api`: the core group.
pub fn aggregated_core(kinds: &Kinds) -> Value {
    aggregated(kinds, |group| group.name.is_empty())
}

/// Aggregated discovery of `/apis`: all other groups.
pub fn aggregated_groups(kinds: &Kinds) -> Value {
    aggregated(kinds, |group| !group.name.is_empty())
}

/// Aggregated discovery in protobuf.
pub fn aggregated_protobuf(document: &Value) -> Result<Vec<u8>, ProtobufError> {
    protobuf::encode(
        document,
        "apidiscovery.k8s.io/v2",
        "APIGroupDiscoveryList",
        "io.k8s.api.apidiscovery.v2.APIGroupDiscoveryList",
    )
}

fn aggregated(kinds: &Kinds, wanted: impl Fn(&Group) -> bool) -> Value {
    let groups = kinds.groups().filter(|group| wanted(group));
    let items = groups.map(|group| {
        let versions = served_versions(kinds, group).map(|version| {
            let mut rows: Vec<&Resource> = kinds.of_version(group.name, version).collect();
            rows.sort_by_key(|row| row.plural);
            json!({
                "version": version,
                "resources": rows.into_iter().map(aggregated_resource).collect::<Vec<_>>(),
                "freshness": "Current",
            })
        });
        let metadata = if group.name.is_empty() {
            json!({})
        } else {
            json!({ "name": group.name })
        };
        json!({ "metadata": metadata, "versions": versions.collect::<Vec<_>>() })
    });
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items.collect::<Vec<_>>(),
    })
}

fn aggregated_resource(row: &Resource) -> Value {
    let mut entry = json!({
        "resource": row.plural,
        "responseKind": response_kind(row, row.group, row.version, row.kind),
        "scope": if row.is_namespaced() { "Namespaced" } else { "Cluster" },
        "singularResource": row.singular,
        "verbs": sorted(verbs(row)),
    });
    if !row.short_names.is_empty() {
        entry["shortNames"] = row.short_names.into();
    }
    if !row.categories.is_empty() {
        entry["categories"] = row.categories.into();
    }
    if !row.subresources.is_empty() {
        let mut subs: Vec<&Subresource> = row.subresources.iter().collect();
        subs.sort_by_key(|sub| sub.name);
        let subs = subs.into_iter().map(|sub| {
            let (group, version, kind) = sub.body.unwrap_or((row.group, row.version, row.kind));
            json!({
                "subresource": sub.name,
                "responseKind": response_kind(row, group, version, kind),
                "verbs": sorted(sub.verbs),
            })
        });
        entry["subresources"] = subs.collect();
    }
    entry
}

/// Empty group and version stand for the resource's own.
fn response_kind(row: &Resource, group: &str, version: &str, kind: &str) -> Value {
    let own = (group, version) == (row.group, row.version);
    let (group, version) = if own { ("", "") } else { (group, version) };
    json!({ "group": group, "version": version, "kind": kind })
}

#[cfg(test)]
mod tests;
