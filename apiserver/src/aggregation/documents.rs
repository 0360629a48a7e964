//! The groups of other servers in the documents of discovery, and in the index of OpenAPI. Pure.
//!
//! What they tell is taken field by field: nothing that they say can spoil the rest of a document.

use super::Remote;
use coracle_api::json;
use serde_json::{Value, json};
use std::sync::Arc;

/// An address with a hash has some hundred.
const URL_BYTES_MAX: usize = 1024;

/// Puts where their documents are into the index of OpenAPI's third version.
pub fn add_schemas(index: &mut Value, remotes: &[Arc<Remote>]) {
    for remote in remotes {
        let name = format!("apis/{}", remote.group_version());
        if let Some(url) = remote.told().schema
            && let Some(paths) = index["paths"].as_object_mut()
        {
            paths.insert(name, json!({ "serverRelativeURL": url }));
        }
    }
}

/// Where the index of another server has its document; none where it leads elsewhere.
pub fn schema_in(index: &Value, group_version: &str) -> Option<String> {
    let entry = json::at(index, &["paths", &format!("apis/{group_version}")]);
    let url = json::text(entry, "serverRelativeURL");
    let rest = url.strip_prefix("/openapi/v3/apis/")?;
    let path = rest.split('?').next()?;
    (path == group_version && url.len() <= URL_BYTES_MAX).then(|| url.to_owned())
}

/// Puts the groups into an APIGroupList.
pub fn add_groups(list: &mut Value, remotes: &[Arc<Remote>]) {
    for (name, versions) in by_group(remotes) {
        let Some(groups) = list["groups"].as_array_mut() else {
            return;
        };
        let known = groups.iter_mut().find(|group| group["name"] == name);
        match known {
            Some(known) => add_versions(known, &versions),
            None => groups.push(group_of(name, &versions)),
        }
    }
}

/// The APIGroup of a name: that of this server with what others add, or theirs alone.
pub fn group(own: Option<Value>, name: &str, remotes: &[Arc<Remote>]) -> Option<Value> {
    let found = by_group(remotes).into_iter().find(|(own, _)| *own == name);
    let Some((_, versions)) = found else {
        return own;
    };
    let mut group = match own {
        Some(mut own) => {
            add_versions(&mut own, &versions);
            own
        }
        None => group_of(name, &versions),
    };
    group["kind"] = "APIGroup".into();
    group["apiVersion"] = "v1".into();
    Some(group)
}

/// Puts the groups with their resources into an APIGroupDiscoveryList.
pub fn add_aggregated(list: &mut Value, remotes: &[Arc<Remote>]) {
    for (name, versions) in by_group(remotes) {
        let versions = versions.into_iter().map(version_of);
        let Some(items) = list["items"].as_array_mut() else {
            return;
        };
        let mut known = items.iter_mut();
        match known.find(|item| item["metadata"]["name"] == name) {
            Some(known) => {
                if let Some(all) = known["versions"].as_array_mut() {
                    for version in versions {
                        all.retain(|one| one["version"] != version["version"]);
                        all.push(version);
                    }
                }
            }
            None => items.push(json!({
                "metadata": { "name": name }, "versions": versions.collect::<Vec<_>>(),
            })),
        }
    }
}

/// In the order in which they come.
fn by_group(remotes: &[Arc<Remote>]) -> Vec<(&str, Vec<&Remote>)> {
    let mut groups: Vec<(&str, Vec<&Remote>)> = Vec::new();
    for remote in remotes {
        match groups.iter_mut().find(|(name, _)| *name == remote.group) {
            Some((_, versions)) => versions.push(remote),
            None => groups.push((&remote.group, vec![remote])),
        }
    }
    groups
}

fn group_of(name: &str, versions: &[&Remote]) -> Value {
    let mut group = json!({ "name": name, "versions": [] });
    add_versions(&mut group, versions);
    group
}

fn add_versions(group: &mut Value, versions: &[&Remote]) {
    for remote in versions {
        let version = json!({ "groupVersion": remote.group_version(), "version": remote.version });
        if let Some(all) = group["versions"].as_array_mut()
            && !all.contains(&version)
        {
            all.push(version);
        }
    }
    if group["preferredVersion"].is_null() {
        group["preferredVersion"] = group["versions"][0].clone();
    }
}

/// Stale is what is not known, or may have changed since the server answered last.
fn version_of(remote: &Remote) -> Value {
    let list = remote.told().resources;
    let freshness = if remote.is_available && list.is_some() {
        "Current"
    } else {
        "Stale"
    };
    let list = list.unwrap_or_default();
    let all = json::list(&list, "resources");
    let (subresources, resources): (Vec<&Value>, Vec<&Value>) = all
        .iter()
        .partition(|one| json::text(one, "name").contains('/'));
    let resources = resources.into_iter().map(|one| {
        let plural = json::text(one, "name");
        let mut entry = json!({
            "resource": plural,
            "responseKind": response_kind(remote, one),
            "scope": if json::flag(one, "namespaced") { "Namespaced" } else { "Cluster" },
            "singularResource": json::text(one, "singularName"),
            "verbs": texts(one, "verbs"),
        });
        for field in ["shortNames", "categories"] {
            if json::has(one, field) {
                entry[field] = texts(one, field);
            }
        }
        let own = subresources.iter().filter_map(|sub| {
            let name = json::text(sub, "name")
                .strip_prefix(plural)?
                .strip_prefix('/')?;
            Some(json!({
                "subresource": name,
                "responseKind": response_kind(remote, sub),
                "verbs": texts(sub, "verbs"),
            }))
        });
        let own: Vec<Value> = own.collect();
        if !own.is_empty() {
            entry["subresources"] = own.into();
        }
        entry
    });
    json!({
        "version": remote.version, "resources": resources.collect::<Vec<_>>(),
        "freshness": freshness,
    })
}

fn texts(value: &Value, field: &str) -> Value {
    let all = json::list(value, field).iter();
    all.filter(|one| one.is_string()).cloned().collect()
}

fn response_kind(remote: &Remote, resource: &Value) -> Value {
    let or = |text: &str, own: &str| if text.is_empty() { own } else { text }.to_owned();
    json!({
        "group": or(json::text(resource, "group"), &remote.group),
        "version": or(json::text(resource, "version"), &remote.version),
        "kind": json::text(resource, "kind"),
    })
}
