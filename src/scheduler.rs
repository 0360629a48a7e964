//! `coracle scheduler`: the scheduler as a process of its own, against any API server.
//!
//! Of several such processes, also upstream's own, one leads by a Lease and the others wait.

use crate::cli::{SchedulerCommand, SchedulerWhat};
use crate::control_plane::until_signalled;
use crate::settings::scheduler::{self as settings, SchedulerSettings};
use crate::{Failure, leading, logging, notify, runtime, settled};
use anyhow::Context;
use coracle_client::Client;
use coracle_client::connect;
use coracle_client::lease::Election;
use coracle_scheduler::Config;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

mod explain; // Why this node, and why not the others.

/// Past this a stop does not wait for the Lease to be let go.
const DRAIN_MAX: Duration = Duration::from_secs(15);

pub fn run(args: SchedulerCommand) -> Result<(), Failure> {
    if let Some(SchedulerWhat::Explain(args)) = &args.what {
        return explain::explain(args);
    }
    let settings = settings::scheduler(&args)?;
    logging::start(args.log.as_deref(), "info")?;
    runtime()?.block_on(async {
        let path = &settings.kubeconfig;
        let loaded = connect::kubeconfig::load(path, None)
            .with_context(|| format!("cannot use the kubeconfig {}", path.display()))?;
        let client = connect::client(&loaded.endpoint);
        let stop = CancellationToken::new();
        let mut running = tokio::spawn(go_on(settings, client, stop.clone()));
        notify::send("READY=1");
        settled::soon();
        tokio::select! {
            ended = &mut running => return ended.context("the scheduler broke off")?,
            signalled = until_signalled() => signalled?,
        }
        notify::send("STOPPING=1");
        stop.cancel();
        match tokio::time::timeout(DRAIN_MAX, running).await {
            Ok(ended) => ended.context("the scheduler broke off")?,
            Err(_) => {
                tracing::warn!("the scheduler did not stop in time");
                Ok(())
            }
        }
    })?;
    Ok(())
}

async fn go_on(
    settings: SchedulerSettings,
    client: Client,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let written = settings.configuration.election.clone();
    let config = Config {
        configuration: settings.configuration,
        ..Config::default()
    };
    if !written.is_on {
        coracle_scheduler::run(config, client, stop).await;
        return Ok(());
    }
    let election = Election {
        namespace: written.namespace,
        lease_duration: written.lease_duration,
        renew_deadline: written.renew_deadline,
        renew_period: written.retry_period,
        retry_period: written.retry_period,
        ..Election::new(written.name, leading::identity()?)
    };
    elected(election, config, client, stop).await
}

/// Schedules whenever this process leads.
pub async fn elected(
    election: Election,
    config: Config,
    client: Client,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let clock = config.clock.clone();
    let begin = |leading| coracle_scheduler::run(config.clone(), client.clone(), leading);
    leading::lead_again(client.clone(), election, clock, stop, begin).await
}
