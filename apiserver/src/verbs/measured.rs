//! `metrics.k8s.io`: what nodes and pods use, measured by the nodes when somebody asks.
//!
//! Which objects there are, and their labels, the store says; what is not measured (yet) is not in
//! a list, and not found by name.

use super::asked::Asked;
use super::told;
use crate::Api;
use crate::options::{ListOptions, Selection};
use crate::registry::{self, glance::Traits};
use crate::tunnel::Body;
use crate::usage::Usage;
use bytes::Bytes;
use coracle_api::catalogue;
use coracle_api::kinds::metrics::{self, Used};
use coracle_api::object::Object;
use coracle_api::resource::Resource;
use coracle_api::status::{Status, Subject};
use http::{Response, StatusCode};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

pub use metrics::GROUP;

/// A node or pod to tell of.
#[derive(Debug)]
struct Subjected {
    traits: Traits,
    /// Where a pod is; a node is its own.
    node: String,
}

/// One, by name.
pub async fn get(api: &Api, asked: &Asked<'_>) -> Result<Response<Body>, Status> {
    let usage = usage(api)?;
    let (row, name) = (behind(asked)?, asked.info.name.as_str());
    let entry = api.registry.entry(row, asked.namespace(), name);
    let entry = entry.ok_or_else(|| Status::not_found(registry::subject(row, name)))?;
    let unmeasured = || {
        let (resource, name) = if asked.resource.is_namespaced() {
            let name = format!("{}/{name}", asked.namespace());
            (metrics::POD_METRICS, name)
        } else {
            (metrics::NODE_METRICS, name.to_owned())
        };
        Status::not_found(Subject {
            group: GROUP,
            resource,
            name: &name,
        })
    };
    let one = subjected(row, &entry.value, &Selection::default()).ok_or_else(unmeasured)?;
    usage.refresh(&BTreeSet::from([one.node.clone()])).await;
    let found = measured(usage, row, &one, asked.now).ok_or_else(unmeasured)?;
    Ok(asked.shape.object(StatusCode::OK, asked.resource, &found))
}

/// All that the selectors choose. Only the nodes that they are on are asked.
pub async fn list(api: &Api, asked: &Asked<'_>) -> Result<Response<Body>, Status> {
    let usage = usage(api)?;
    let options = ListOptions::parse(asked.resource, &asked.query, &asked.info.name)?;
    let row = behind(asked)?;
    let snapshot = api.registry.snapshot(row);
    let mut chosen: Vec<Subjected> = snapshot
        .range_from("", &registry::prefix(asked.namespace()))
        .filter_map(|(_, entry)| subjected(row, &entry.value, &options.selection))
        .collect();
    drop(snapshot);
    chosen.sort_by(|a, b| key(&a.traits).cmp(&key(&b.traits)));
    let nodes = chosen.iter().map(|one| one.node.clone()).collect();
    usage.refresh(&nodes).await;
    let found = chosen
        .iter()
        .filter_map(|one| measured(usage, row, one, asked.now));
    Ok(told::list(asked, found.collect()))
}

fn usage(api: &Api) -> Result<&Arc<Usage>, Status> {
    api.usage.as_ref().ok_or_else(Status::path_not_found)
}

/// The row of what is measured.
fn behind(asked: &Asked<'_>) -> Result<&'static Resource, Status> {
    catalogue::find("", "v1", asked.resource.plural).ok_or_else(Status::path_not_found)
}

fn key(traits: &Traits) -> (&str, &str) {
    (&traits.namespace, &traits.name)
}

/// `None` for what the selectors leave out, and for a pod that is nowhere.
fn subjected(row: &Resource, value: &Bytes, selection: &Selection) -> Option<Subjected> {
    let traits = Traits::of(row, value, false)?;
    if !selection.matches(row, &traits) {
        return None;
    }
    let node = if row.is_namespaced() {
        let pod: Placed = serde_json::from_slice(value).ok()?;
        pod.spec.node_name
    } else {
        traits.name.clone()
    };
    (!node.is_empty()).then_some(Subjected { traits, node })
}

/// All that is read of a pod.
#[derive(Deserialize)]
struct Placed {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    #[serde(default, rename = "nodeName")]
    node_name: String,
}

fn measured(usage: &Usage, row: &Resource, one: &Subjected, now: Timestamp) -> Option<Object> {
    let traits = &one.traits;
    let labels: Value = json!(traits.labels);
    if !row.is_namespaced() {
        let used = usage.node(&one.node)?;
        return Some(metrics::node(&traits.name, labels, &used, now));
    }
    let containers = usage.pod(&one.node, &traits.namespace, &traits.name)?;
    let each: Vec<(&str, Used)> = containers
        .iter()
        .map(|(name, used)| (name.as_str(), *used))
        .collect();
    metrics::pod((&traits.namespace, &traits.name), labels, &each, now)
}
