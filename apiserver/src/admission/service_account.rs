//! Every pod acts as a service account of its namespace: `default` when it names none. Its
//! containers find the account's token, the cluster's CA and the namespace in a volume, unless the
//! pod or the account does without.

mod secrets; // Accounts whose pods may mount their own secrets alone.
mod token_volume; // The volume with the token, and its mounts.

use super::{Attributes, Operation};
use crate::authorize::node_graph::{Referred, names_in};
use crate::view::View;
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::pod_spec::MIRROR;
use coracle_api::status::Status;
use serde_json::{Value, json};
use std::time::Duration;

pub const DEFAULT: &str = "default";

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
    let account = account_of(view, pod, asked).await?;
    if wants_token(&account, pod) {
        token_volume::mount(pod);
    }
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
    secrets::check(&account, pod).map_err(|why| asked.forbidden(Some(pod), why))
}

pub async fn validate(view: &dyn View, pod: &Object, asked: &Attributes<'_>) -> Result<(), Status> {
    let check: secrets::Check = match (asked.subresource, asked.operation) {
        _ if !asked.is("", "pods") => return Ok(()),
        ("", Operation::Create) if pod.annotation(MIRROR).is_some() => return mirror(pod, asked),
        ("", Operation::Create) => secrets::check,
        ("ephemeralcontainers", Operation::Update) => secrets::check_ephemeral,
        _ => return Ok(()),
    };
    if pod.str(&["spec", "serviceAccountName"]).is_empty() {
        let why = format!(
            "no service account specified for pod {}/{}",
            asked.namespace,
            pod.name()
        );
        return Err(asked.forbidden(Some(pod), why));
    }
    let account = account_of(view, pod, asked).await?;
    check(&account, pod).map_err(|why| asked.forbidden(Some(pod), why))
}

async fn account_of(
    view: &dyn View,
    pod: &Object,
    asked: &Attributes<'_>,
) -> Result<Object, Status> {
    let name = pod.str(&["spec", "serviceAccountName"]);
    let attempts = if name == DEFAULT { ATTEMPTS } else { 1 };
    for attempt in 0..attempts {
        if attempt > 0 {
            tokio::time::sleep(RETRY).await;
        }
        if let Some(account) = view.get("", "serviceaccounts", asked.namespace, name) {
            return Ok(account);
        }
    }
    let why = format!(
        "error looking up service account {}/{name}: serviceaccount {name:?} not found",
        asked.namespace
    );
    Err(asked.forbidden(Some(pod), why))
}

/// The pod decides before its account.
fn wants_token(account: &Object, pod: &Object) -> bool {
    const FIELD: &str = "automountServiceAccountToken";
    let of_pod = pod.get(&["spec", FIELD]).and_then(Value::as_bool);
    let of_account = account.get(&[FIELD]).and_then(Value::as_bool);
    of_pod.or(of_account).unwrap_or(true)
}

/// The reflection of a pod that a node runs by itself has no rights here.
fn mirror(pod: &Object, asked: &Attributes<'_>) -> Result<(), Status> {
    if !pod.str(&["spec", "serviceAccountName"]).is_empty() {
        let why = "a mirror pod may not reference service accounts";
        return Err(asked.forbidden(Some(pod), why));
    }
    let names = names_in(pod);
    if names.iter().any(|(kind, _)| *kind == Referred::Secret) {
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
