//! Makes the Node, or takes up again the one that is there.

use super::facts::Facts;
use super::object;
use crate::{AgentError, Config};
use coracle_client::Client;
use coracle_client::patch::merge_difference;
use coracle_client::volumes::LOCAL_PATH_DIRECTORY;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use rand::RngExt;
use serde_json::{Value, json};
use std::time::Duration;

/// A living node renews its lease within this, with some to spare.
const LEASE_LOOK: Duration = Duration::from_secs(12);
const LEASE_LOOK_EVERY: Duration = Duration::from_millis(500);
const RETRY_FIRST: Duration = Duration::from_millis(100);
/// Upstream's longest pause between tries to register.
const RETRY_LONGEST: Duration = Duration::from_secs(7);

/// Tries until the server has the Node. `is_new` says that this machine has just enrolled: then
/// the name must not be that of a node that is alive.
pub async fn register(
    client: &Client,
    config: &Config,
    facts: &Facts,
    is_new: bool,
) -> Result<(), AgentError> {
    let api: Api<Node> = Api::all(client.clone());
    let mut pause = RETRY_FIRST;
    loop {
        match try_register(client, &api, config, facts, is_new).await {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => {
                return Err(AgentError::NameTaken {
                    name: config.node_name.clone(),
                });
            }
            Err(kube::Error::Api(status)) if status.code == 422 => {
                return Err(AgentError::Refused {
                    action: "take this node",
                    source: Box::new(kube::Error::Api(status)),
                });
            }
            Err(error) => tracing::warn!(%error, "cannot register the node yet"),
        }
        let jitter = rand::rng().random_range(0.75..1.25);
        tokio::time::sleep(pause.mul_f64(jitter)).await;
        pause = (pause * 2).min(RETRY_LONGEST);
    }
}

/// None: the name belongs to a node that is alive.
async fn try_register(
    client: &Client,
    api: &Api<Node>,
    config: &Config,
    facts: &Facts,
    is_new: bool,
) -> Result<Option<Node>, kube::Error> {
    let node = object::node(config, facts);
    match api.create(&PostParams::default(), &node).await {
        Ok(node) => return Ok(Some(node)),
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        Err(error) => return Err(error),
    }
    let known = api.get(&config.node_name).await?;
    if is_new && is_alive(client, &known).await? {
        return Ok(None);
    }
    let Some(difference) = difference(&known.metadata, config, facts) else {
        return Ok(Some(known));
    };
    let patch = Patch::Merge(json!({ "metadata": difference }));
    let patched = api
        .patch(&config.node_name, &PatchParams::default(), &patch)
        .await;
    patched.map(Some)
}

/// What the Node does not say of the node yet, or no longer.
fn difference(known: &ObjectMeta, config: &Config, facts: &Facts) -> Option<Value> {
    let mut labels = known.labels.clone().unwrap_or_default();
    let mut annotations = known.annotations.clone().unwrap_or_default();
    let old = json!({ "labels": labels, "annotations": annotations });
    labels.extend(object::labels(config, facts));
    annotations.remove(LOCAL_PATH_DIRECTORY);
    annotations.extend(object::annotations(config));
    let new = json!({ "labels": labels, "annotations": annotations });
    merge_difference(&old, &new)
}

/// Whether somebody renews the node's lease. Clocks are not compared: the lease must change.
async fn is_alive(client: &Client, node: &Node) -> Result<bool, kube::Error> {
    let conditions = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    let is_ready = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    if !is_ready {
        return Ok(false);
    }
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let api: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    let renewed = |lease: Option<Lease>| lease.and_then(|lease| lease.spec?.renew_time);
    let Some(first) = renewed(api.get_opt(name).await?) else {
        return Ok(false);
    };
    tracing::info!(
        node = name,
        "a node of this name is known; looking whether it is alive"
    );
    let mut waited = Duration::ZERO;
    while waited < LEASE_LOOK {
        tokio::time::sleep(LEASE_LOOK_EVERY).await;
        waited += LEASE_LOOK_EVERY;
        if renewed(api.get_opt(name).await?).is_some_and(|time| time != first) {
            return Ok(true);
        }
    }
    Ok(false)
}
