//! `coracle agent`, and the node half of `coracle up`.

use crate::cli::AgentCommand;
use crate::settings::{self, AgentSettings, file};
use crate::{Failure, control_plane, logging, notify, runtime, settled};
use anyhow::Context;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Past this an agent that does not stop is left behind; its containers run on either way.
const DRAIN_MAX: Duration = Duration::from_secs(15);

pub fn run(mut args: AgentCommand) -> Result<(), Failure> {
    file::merge(file::Targets {
        common: &mut args.common,
        server: None,
        agent: Some(&mut args.agent),
        dns: Some(&mut args.dns),
    })?;
    let mut settings = settings::agent(&args.common, &args.agent, &host_name()?, true)?;
    settings.dns = settings::dns::agent(&args.dns)?;
    logging::start(args.common.log.as_deref(), "info")?;
    let server = settings.server.clone().unwrap_or_default();
    runtime()?.block_on(async {
        let stop = CancellationToken::new();
        let (ready, is_ready) = tokio::sync::oneshot::channel();
        let mut running = tokio::spawn(coracle_agent::run(
            config(&settings, server, settings.token.clone()),
            stop.clone(),
            ready,
        ));
        tokio::spawn(async move {
            if is_ready.await.is_ok() {
                notify::send("READY=1");
                settled::soon();
            }
        });
        tokio::select! {
            ended = &mut running => return ended.context("the agent broke off")?.map_err(Into::into),
            signalled = control_plane::until_signalled() => signalled?,
        }
        notify::send("STOPPING=1");
        stop.cancel();
        if tokio::time::timeout(DRAIN_MAX, running).await.is_err() {
            tracing::warn!("the agent did not stop in time");
        }
        Ok::<(), anyhow::Error>(())
    })?;
    Ok(())
}

/// `coracle wipe`: ends a node's containers and takes away what it made on this machine.
pub fn wipe(data_dir: Option<&str>) -> Result<(), Failure> {
    let data_dir = settings::parse::directory("data-dir", data_dir)?;
    logging::start(None, "warn")?;
    runtime()?.block_on(async {
        coracle_agent::wipe(&data_dir.join("agent"))
            .await
            .context("not all could be taken away")
    })?;
    Ok(())
}

pub fn host_name() -> anyhow::Result<String> {
    let name = nix::unistd::gethostname().context("cannot read the host name")?;
    Ok(name.to_string_lossy().into_owned())
}

pub fn config(
    settings: &AgentSettings,
    server_url: String,
    token: Option<String>,
) -> coracle_agent::Config {
    coracle_agent::Config {
        server_url,
        token,
        joining: settings.joining.clone(),
        node_name: settings.node_name.clone(),
        node_ips: settings.node_ips.iter().copied().collect(),
        labels: settings.labels.clone(),
        taints: settings
            .taints
            .iter()
            .map(|taint| (taint.key.clone(), taint.value.clone(), taint.effect.clone()))
            .collect(),
        allowed_unsafe_sysctls: settings.allowed_unsafe_sysctls.clone(),
        seccomp_default: settings.seccomp_default,
        pod_pids_max: settings.pod_pids_max,
        static_pods: settings.static_pods.clone(),
        kubelet_dir: settings.kubelet_dir.clone(),
        local_path_dir: settings.local_path_dir.clone(),
        resources: settings.resources.clone(),
        container_runtime: settings.container_runtime.clone(),
        resolv_conf: settings.resolv_conf.clone(),
        cni: settings.cni.clone(),
        routing: settings.routing.clone(),
        dns: settings.dns.clone(),
        data_dir: settings.data_dir.join("agent"),
    }
}
