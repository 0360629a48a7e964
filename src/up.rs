//! `coracle up`: control plane and node in one process.

use crate::cli::UpArgs;
use crate::control_plane::{self, ControlPlane};
use crate::settings::{self, AgentSettings, ServerSettings, file};
use crate::{Failure, demo, elevate, logging, node, notify, runtime, settled};
use anyhow::{Context, anyhow};
use coracle_apiserver::bootstrap_tokens;
use coracle_client::Client;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams};
use std::path::PathBuf;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Past this a node that does not stop is left behind.
const DRAIN_MAX: Duration = Duration::from_secs(15);
/// The token is used within the second; it lives on for a node that starts slowly.
const TOKEN_LIFE: Duration = Duration::from_secs(600);

/// A control plane and its node, running.
#[derive(Debug)]
pub struct Cluster {
    pub plane: ControlPlane,
    pub node_name: String,
    pub kubeconfig: PathBuf,
    agent: JoinHandle<Result<(), coracle_agent::AgentError>>,
    stop_agent: CancellationToken,
}

pub fn run(mut args: UpArgs) -> Result<(), Failure> {
    file::merge(file::Targets {
        common: &mut args.common,
        server: Some(&mut args.server),
        agent: Some(&mut args.agent),
        dns: None,
    })?;
    let scratch = if args.demo {
        demo::scratch(&mut args.common)?
    } else {
        None
    };
    let server = settings::server(&args.common, &args.server)?;
    let mut agent = settings::agent(&args.common, &args.agent, &node::host_name()?, false)?;
    if args.demo && args.agent.cni_conf_dir.is_none() {
        // Plugins would leave something behind.
        agent.cni.configurations = agent.data_dir.join("net.d");
    }
    logging::start(
        args.common.log.as_deref(),
        if args.demo { "warn" } else { "info" },
    )?;
    elevate::ensure_root().map_err(|text| anyhow!(text))?;
    let result = runtime()?.block_on(async {
        if args.demo {
            demo::run(&server, &agent).await
        } else {
            serve(&server, &agent).await
        }
    });
    if let Some(directory) = scratch {
        demo::remove(&directory)?;
    }
    Ok(result?)
}

async fn serve(server: &ServerSettings, agent: &AgentSettings) -> anyhow::Result<()> {
    let mut cluster = start(server, agent).await?;
    notify::send("READY=1");
    settled::soon();
    tokio::select! {
        ended = cluster.agent_ended() => return Err(ended),
        signalled = control_plane::until_signalled() => signalled?,
    }
    notify::send("STOPPING=1");
    cluster.drain().await;
    Ok(())
}

/// Starts the control plane, then the node, which enrols with a token made on the spot.
pub async fn start(server: &ServerSettings, agent: &AgentSettings) -> anyhow::Result<Cluster> {
    let plane = control_plane::start(server).await?;
    let made = match &agent.token {
        Some(_) => None,
        None => Some(
            plane
                .server
                .create_token("enrols the node of coracle up", Some(TOKEN_LIFE))
                .await
                .context("cannot make a token for the node")?,
        ),
    };
    let token = agent.token.clone().or_else(|| made.clone());
    let port = plane.address.port();
    let host = if plane.address.is_ipv6() {
        "[::1]"
    } else {
        "127.0.0.1"
    };
    let host = match plane.address.ip() {
        ip if ip.is_unspecified() => host.to_owned(),
        std::net::IpAddr::V6(ip) => format!("[{ip}]"),
        std::net::IpAddr::V4(ip) => ip.to_string(),
    };
    let stop_agent = CancellationToken::new();
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let config = node::config(agent, format!("https://{host}:{port}"), token);
    let agent_task = tokio::spawn(coracle_agent::run(config, stop_agent.clone(), ready));
    if let Some(token) = made {
        let client = control_plane::admin(&plane.server);
        tokio::spawn(async move {
            if is_ready.await.is_ok() {
                forget(client, &token).await;
            }
        });
    }
    Ok(Cluster {
        plane,
        node_name: agent.node_name.clone(),
        kubeconfig: server.write_kubeconfig.clone(),
        agent: agent_task,
        stop_agent,
    })
}

/// A token that was made for the one node has done its work once that runs.
async fn forget(client: Client, token: &str) {
    let Some(id) = bootstrap_tokens::id_of(token) else {
        return;
    };
    let secrets: Api<Secret> = Api::namespaced(client, "kube-system");
    let name = bootstrap_tokens::secret_name(&id);
    if let Err(error) = secrets.delete(&name, &DeleteParams::default()).await {
        tracing::debug!(%error, "the token is left to run out");
    }
}

impl Cluster {
    /// Waits for the node to end by itself, which is always a failure.
    pub async fn agent_ended(&mut self) -> anyhow::Error {
        match (&mut self.agent).await {
            Ok(Ok(())) => anyhow!("the node stopped by itself"),
            Ok(Err(error)) => anyhow::Error::from(error).context("the node failed"),
            Err(error) => anyhow::Error::from(error).context("the node broke off"),
        }
    }

    /// Stops the node, whose containers run on, then the control plane.
    pub async fn drain(self) {
        self.stop_agent.cancel();
        if tokio::time::timeout(DRAIN_MAX, self.agent).await.is_err() {
            tracing::warn!("the node did not stop in time");
        }
        self.plane.drain().await;
    }
}
