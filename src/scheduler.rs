//! `coracle scheduler`: the scheduler as a process of its own, against any API server.
//!
//! Of several such processes, also upstream's own, one leads by a Lease and the others wait.

use crate::cli::{SchedulerCommand, SchedulerWhat};
use crate::control_plane::until_signalled;
use crate::leading::Watchdog;
use crate::secure_port::{self, Pages, Resources, health::Check};
use crate::settings::scheduler::{self as settings, SchedulerSettings};
use crate::{Failure, leading, logging, notify, runtime, settled};
use anyhow::Context;
use coracle_client::Client;
use coracle_client::connect;
use coracle_client::lease::Election;
use coracle_scheduler::Config;
use coracle_scheduler::metrics::pod_resources;
use std::sync::Arc;
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
        let (election, config) = (election(&settings)?, config(&settings));
        let pages = pages(election.as_ref(), &config, &client, &stop);
        let serving = stop.child_token();
        secure_port::open(settings.port.as_ref(), pages, &serving).await?;
        let mut running = tokio::spawn(go_on(election, config, client, stop.clone()));
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

fn config(settings: &SchedulerSettings) -> Config {
    Config {
        configuration: settings.configuration.clone(),
        ..Config::default()
    }
}

/// None where it schedules at all times.
fn election(settings: &SchedulerSettings) -> anyhow::Result<Option<Election>> {
    let written = settings.configuration.election.clone();
    if !written.is_on {
        return Ok(None);
    }
    Ok(Some(Election {
        namespace: written.namespace,
        lease_duration: written.lease_duration,
        renew_deadline: written.renew_deadline,
        renew_period: written.retry_period,
        retry_period: written.retry_period,
        ..Election::new(written.name, leading::identity()?)
    }))
}

/// What is told on the port. Who waits to lead is ready to: it reads nothing before.
fn pages(
    election: Option<&Election>,
    config: &Config,
    client: &Client,
    stop: &CancellationToken,
) -> Pages {
    let watchdog = election.map(Watchdog::of).unwrap_or_default();
    let leads = || {
        let watchdog = watchdog.clone();
        let check = Check::new("leaderElection", move || watchdog.check());
        election.is_some().then_some(check)
    };
    let stop = stop.clone();
    let shutdown = Check::new("shutdown", move || match stop.is_cancelled() {
        true => Err("process is shutting down".to_owned()),
        false => Ok(()),
    });
    let (waits, metrics) = (watchdog.clone(), Arc::clone(&config.metrics));
    let synced = Check::new("sched-handler-sync", move || {
        match waits.may_work() && !metrics.is_watching() {
            true => Err("handlers are not fully synchronized".to_owned()),
            false => Ok(()),
        }
    });
    let well = leads().unwrap_or_else(Check::ping);
    let ready = leads().into_iter().chain([shutdown, synced]).collect();
    let metrics = Arc::clone(&config.metrics);
    Pages {
        component: "kube-scheduler",
        watchdog,
        health: vec![
            ("/healthz", vec![well]),
            ("/livez", vec![Check::ping()]),
            ("/readyz", ready),
        ],
        metrics: Box::new(move |text| metrics.text(text)),
        resources: Some(resources(client.clone())),
        configuration: config.configuration.shown(),
    }
}

/// What pods ask for, whether this process leads or not.
fn resources(client: Client) -> Resources {
    Box::new(move || {
        let client = client.clone();
        Box::pin(async move {
            let told = pod_resources(&client).await;
            told.map_err(|error| error.to_string())
        })
    })
}

async fn go_on(
    election: Option<Election>,
    config: Config,
    client: Client,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    match election {
        Some(election) => elected(election, config, client, stop).await,
        None => {
            coracle_scheduler::run(config, client, stop).await;
            Ok(())
        }
    }
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
