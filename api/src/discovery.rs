//! Discovery documents from the catalogue: the legacy ones, one a level, and aggregated v2.
//!
//! Pure; the caller negotiates with [`wants_aggregated`] and may keep the documents, which do not
//! change while the process lives.

use crate::catalogue;
use crate::resource::{Resource, Subresource};
use serde_json::{Value, json};

/// Content type of aggregated discovery.
pub const AGGREGATED_V2: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// How many media ranges of an `Accept` header are looked at; kubectl sends three.
const MEDIA_RANGES_MAX: usize = 32;

/// Whether an `Accept` header asks for aggregated discovery before plain JSON.
pub fn wants_aggregated(accept: &str) -> bool {
    let ranges = accept.split(',').take(MEDIA_RANGES_MAX);
    let mut ranges: Vec<(u16, &str)> = ranges.map(|range| (weight(range), range)).collect();
    ranges.sort_by_key(|range| std::cmp::Reverse(range.0));
    for (_, range) in ranges {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or("");
        if !matches!(media_type, "application/json" | "application/*" | "*/*") {
            continue;
        }
        let parameter = |name: &str| {
            range
                .split(';')
                .skip(1)
                .find_map(|part| part.trim().strip_prefix(name))
                .unwrap_or("")
        };
        match (parameter("g="), parameter("v="), parameter("as=")) {
            ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList") => return true,
            ("", _, "") => return false,
            _ => {} // Another form, which is not served.
        }
    }
    false
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
pub fn group_list() -> Value {
    let groups = catalogue::groups().filter(|group| !group.name.is_empty());
    json!({
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": groups.map(group_entry).collect::<Vec<_>>(),
    })
}

/// `/apis/GROUP`.
pub fn group(name: &str) -> Option<Value> {
    if name.is_empty() {
        return None;
    }
    let mut entry = group_entry(catalogue::groups().find(|group| group.name == name)?);
    entry["kind"] = "APIGroup".into();
    entry["apiVersion"] = "v1".into();
    Some(entry)
}

fn group_entry(group: &catalogue::Group) -> Value {
    let versions: Vec<Value> = served_versions(group)
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
fn served_versions(group: &catalogue::Group) -> impl Iterator<Item = &'static str> {
    let name = group.name;
    let served = move |version: &&str| catalogue::of_version(name, version).next().is_some();
    group.versions.iter().copied().filter(served)
}

/// `/api/v1` (empty group) and `/apis/GROUP/VERSION`.
pub fn resource_list(group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    for row in catalogue::of_version(group, version) {
        resources.push(resource_entry(row));
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

fn resource_entry(row: &Resource) -> Value {
    let mut entry = json!({
        "name": row.plural,
        "singularName": row.singular,
        "namespaced": row.is_namespaced(),
        "kind": row.kind,
        "verbs": sorted(row.verbs),
    });
    if !row.short_names.is_empty() {
        entry["shortNames"] = row.short_names.into();
    }
    if !row.categories.is_empty() {
        entry["categories"] = row.categories.into();
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
pub fn aggregated_core() -> Value {
    aggregated(|group| group.name.is_empty())
}

/// Aggregated discovery of `/apis`: all other groups.
pub fn aggregated_groups() -> Value {
    aggregated(|group| !group.name.is_empty())
}

fn aggregated(wanted: impl Fn(&catalogue::Group) -> bool) -> Value {
    let groups = catalogue::groups().filter(|group| wanted(group));
    let items = groups.map(|group| {
        let versions = served_versions(group).map(|version| {
            let mut rows: Vec<&Resource> = catalogue::of_version(group.name, version).collect();
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
        "verbs": sorted(row.verbs),
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
