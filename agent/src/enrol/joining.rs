//! The identity of a node in a cluster that is not ours: a kubeconfig in place of a token.
//!
//! With a bootstrap kubeconfig the node waits for its own certificate, as it is nobody without one.
//! With any other it begins as who the kubeconfig says, and becomes itself when the cluster has
//! signed its certificate. One that it has from before is used before either.

use super::files::Files;
use super::identity::{CLIENT, Enrolled, identity, is_valid};
use super::renewal::SERVING;
use super::request::{Purpose, RequestError, obtain};
use crate::{AgentError, Config, Joining};
use coracle_client::clock::Clock;
use coracle_client::connect::{self, Endpoint, Identity, kubeconfig};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use std::time::Duration;

/// For a server to say whether it knows the certificate from before; one that says nothing may
/// come back, and the node's static pods do not wait for it.
const ASK_MAX: Duration = Duration::from_secs(5);

pub async fn join(
    config: &Config,
    joining: &Joining,
    clock: &Clock,
) -> Result<Enrolled, AgentError> {
    let files = Files::open_joined(&config.data_dir)?;
    let endpoint = endpoint(joining)?;
    if let Some(identity) = known(config, &files, &endpoint, clock).await? {
        return Ok(enrolled(endpoint, identity, files, false));
    }
    if !joining.is_bootstrap {
        let identity = endpoint.identity().clone();
        return Ok(enrolled(endpoint, identity, files, false));
    }
    let client = connect::client(&endpoint);
    let pair = obtain(&client, &config.node_name, &Purpose::Client).await;
    let pair = pair.map_err(|error| refused(error, joining, &endpoint))?;
    files.set_pair(CLIENT, &pair)?;
    tracing::info!(node = config.node_name, "has its certificate");
    let identity = identity(&files, &pair.certificate, &pair.key)?;
    Ok(enrolled(endpoint, identity, files, true))
}

fn enrolled(endpoint: Endpoint, identity: Identity, files: Files, is_new: bool) -> Enrolled {
    Enrolled {
        endpoint: endpoint.with_identity(identity.clone()),
        identity,
        files,
        is_new,
    }
}

fn endpoint(joining: &Joining) -> Result<Endpoint, AgentError> {
    match kubeconfig::load(&joining.kubeconfig, None) {
        Ok(loaded) => Ok(loaded.endpoint),
        Err(source) => Err(AgentError::Kubeconfig {
            path: joining.kubeconfig.clone(),
            source: Box::new(source),
        }),
    }
}

/// None when there is none that is worth anything: expired, of another name or of another cluster.
async fn known(
    config: &Config,
    files: &Files,
    endpoint: &Endpoint,
    clock: &Clock,
) -> Result<Option<Identity>, AgentError> {
    let Some(pair) = files.pair(CLIENT)? else {
        return Ok(None);
    };
    if !is_valid(&pair, &config.node_name, clock) {
        files.remove_pair(CLIENT)?;
        return Ok(None);
    }
    let identity = identity(files, &pair.certificate, &pair.key)?;
    let client = connect::client(&endpoint.clone().with_identity(identity.clone()));
    let nodes: Api<Node> = Api::all(client);
    let asked = tokio::time::timeout(ASK_MAX, nodes.get_opt(&config.node_name)).await;
    let is_unknown = matches!(asked, Ok(Err(kube::Error::Api(status))) if status.code == 401);
    if is_unknown {
        tracing::warn!("the server does not know the node's certificate; asks for another");
        files.remove_pair(CLIENT)?;
        // Of that cluster too.
        files.remove_pair(SERVING)?;
        return Ok(None);
    }
    Ok(Some(identity))
}

fn refused(error: RequestError, joining: &Joining, endpoint: &Endpoint) -> AgentError {
    match error.into_agent_error(&endpoint.url().to_string()) {
        AgentError::TokenRefused => AgentError::KubeconfigRefused {
            path: joining.kubeconfig.clone(),
        },
        other => other,
    }
}
