//! Every pod acts as a service account of its namespace: `default` when it names none.
//!
//! Tokens are not mounted yet: there is nobody to issue them.

use super::{Attributes, Operation};
use crate::authorize::node_graph::{Referred, references};
use crate::view::View;
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::status::Status;
use serde_json::{Value, json};
use std::time::Duration;

pub const DEFAULT: &str = "default";

const MIRROR: &str = "kubernetes.io/config.mirror";
/// A new namespace gets its `default` account from a controller, soon: a pod that comes with the
/// namespace waits this long for it, as upstream.
const ATTEMPTS: u32 = 10;
const RETRY: Duration = Duration::from_millis(100);

pub async fn admit(
    view: &dyn View,
    pod: &mut Object,
    asked: &Attributes<'_>,
) -> Result<(), Status> {
    if !asked.is_main("", "pods") || asked.operation != Operation::Create {
        return Ok(());
    }
    if pod.annotation(MIRROR).is_some() {
        return mirror(pod, asked);
    }
    if pod.str(&["spec", "serviceAccountName"]).is_empty() {
        pod.set(&["spec", "serviceAccountName"], DEFAULT.into());
        // The old name of the same field.
        pod.set(&["spec", "serviceAccount"], DEFAULT.into());
    }
    let name = pod.str(&["spec", "serviceAccountName"]).to_owned();
    let Some(account) = find(view, asked.namespace, &name).await else {
        let why = format!(
            "error looking up service account {}/{name}: serviceaccount {name:?} not found",
            asked.namespace
        );
        return Err(asked.forbidden(Some(pod), why));
    };
    if pod.list(&["spec", "imagePullSecrets"]).is_empty() {
        let secrets: Vec<Value> = account
            .list(&["imagePullSecrets"])
            .iter()
            .map(|secret| json!({ "name": json::text(secret, "name") }))
            .collect();
        if !secrets.is_empty() {
            pod.set(&["spec", "imagePullSecrets"], Value::Array(secrets));
        }
    }
    Ok(())
}

async fn find(view: &dyn View, namespace: &str, name: &str) -> Option<Object> {
    let attempts = if name == DEFAULT { ATTEMPTS } else { 1 };
    for attempt in 0..attempts {
        if attempt > 0 {
            tokio::time::sleep(RETRY).await;
        }
        if let Some(account) = view.get("", "serviceaccounts", namespace, name) {
            return Some(account);
        }
    }
    None
}

/// The reflection of a pod that a node runs by itself has no rights here.
fn mirror(pod: &Object, asked: &Attributes<'_>) -> Result<(), Status> {
    if !pod.str(&["spec", "serviceAccountName"]).is_empty() {
        let why = "a mirror pod may not reference service accounts";
        return Err(asked.forbidden(Some(pod), why));
    }
    let mut plain = pod.clone();
    plain.remove(&["metadata", "annotations"]);
    if references(&plain)
        .iter()
        .any(|(kind, _)| *kind == Referred::Secret)
    {
        return Err(asked.forbidden(Some(pod), "a mirror pod may not reference secrets"));
    }
    let projects_token = pod.list(&["spec", "volumes"]).iter().any(|volume| {
        json::list(json::get(volume, "projected"), "sources")
            .iter()
            .any(|source| json::has(source, "serviceAccountToken"))
    });
    if projects_token {
        let why = "a mirror pod may not use ServiceAccountToken volume projections";
        return Err(asked.forbidden(Some(pod), why));
    }
    Ok(())
}
