//! `coracle controllers`: the loops as a process of their own, against any API server.
//!
//! Of several such processes, also upstream's own, one leads by a Lease and the others wait. A
//! process that loses it ends its loops before another begins its own, and stands again.

mod shown; // The configuration in force.

use crate::cli::ControllersCommand;
use crate::control_plane::until_signalled;
use crate::leading::Watchdog;
use crate::secure_port::{self, Pages, health::Check};
use crate::settings::controllers::{self as settings, ControllersSettings};
use crate::{Failure, leading, logging, notify, runtime, settled};
use anyhow::Context;
use coracle_api::exposition::Text;
use coracle_client::Client;
use coracle_client::connect::{self, Endpoint};
use coracle_client::control_loop;
use coracle_client::lease::Election;
use coracle_controllers::Config;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Upstream's, so that never two lead where both stand.
pub const LEASE: &str = "kube-controller-manager";
/// Past this a stop does not wait for the Lease to be let go.
const DRAIN_MAX: Duration = Duration::from_secs(15);

pub type ClientFor = Arc<dyn Fn(&str) -> Client + Send + Sync>;

pub fn run(args: ControllersCommand) -> Result<(), Failure> {
    let settings = settings::controllers(&args)?;
    logging::start(args.log.as_deref(), "info")?;
    let config = config(&settings)?;
    runtime()?.block_on(async {
        let path = &settings.kubeconfig;
        let loaded = connect::kubeconfig::load(path, None)
            .with_context(|| format!("cannot use the kubeconfig {}", path.display()))?;
        let client = connect::client(&loaded.endpoint);
        let client_for = client_for(&settings, loaded.endpoint);
        let stop = CancellationToken::new();
        let election = election(&settings)?;
        let serving = stop.child_token();
        let pages = pages(&settings, election.as_ref());
        secure_port::open(settings.port.as_ref(), pages, &serving).await?;
        let mut running = tokio::spawn(go_on(election, config, client, client_for, stop.clone()));
        notify::send("READY=1");
        settled::soon();
        tokio::select! {
            ended = &mut running => return ended.context("the controllers broke off")?,
            signalled = until_signalled() => signalled?,
        }
        notify::send("STOPPING=1");
        stop.cancel();
        match tokio::time::timeout(DRAIN_MAX, running).await {
            Ok(ended) => ended.context("the controllers broke off")?,
            Err(_) => {
                tracing::warn!("the controllers did not stop in time");
                Ok(())
            }
        }
    })?;
    Ok(())
}

fn config(settings: &ControllersSettings) -> anyhow::Result<Config> {
    let mut config = Config {
        cluster_cidr: settings.cluster_cidr.clone(),
        load_balancer_pool: settings.load_balancer_pool.clone(),
        node_monitor_grace_period: settings.node_monitor_grace_period,
        legacy_token_clean_up_period: settings.legacy_token_clean_up_period,
        disabled: settings.disabled.clone(),
        ..Config::default()
    };
    if let Some(path) = &settings.root_ca {
        config.ca_cert_pem = read(path)?;
    }
    if let Some((certificate, key)) = &settings.signing {
        config.signing_cert_pem = read(certificate)?;
        config.signing_key_pem = read(key)?;
    }
    Ok(config)
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Each loop as itself, or all as the kubeconfig's user.
fn client_for(settings: &ControllersSettings, endpoint: Endpoint) -> ClientFor {
    let common = connect::client(&endpoint);
    let is_each = settings.acts_as_accounts;
    Arc::new(move |user| {
        let is_account = user.starts_with("system:serviceaccount:");
        let acting = (is_each && is_account).then(|| endpoint.clone().acting_as(user));
        match acting {
            Some(Ok(endpoint)) => connect::client(&endpoint),
            _ => common.clone(),
        }
    })
}

/// None where they run at all times.
fn election(settings: &ControllersSettings) -> anyhow::Result<Option<Election>> {
    if !settings.is_elected {
        return Ok(None);
    }
    Ok(Some(Election::new(LEASE, leading::identity()?)))
}

/// What is told on the port.
fn pages(settings: &ControllersSettings, election: Option<&Election>) -> Pages {
    let watchdog = election.map(Watchdog::of).unwrap_or_default();
    let well = match election {
        Some(_) => {
            let watchdog = watchdog.clone();
            Check::new("leaderElection", move || watchdog.check())
        }
        None => Check::ping(),
    };
    Pages {
        component: LEASE,
        watchdog,
        health: vec![("/healthz", vec![well])],
        metrics: Box::new(metrics),
        resources: None,
        configuration: shown::configuration(settings, election),
    }
}

/// Of the loops of this process.
pub fn metrics(text: &mut Text) {
    for family in control_loop::families() {
        text.family(family.name, family.kind, family.help);
        for (name, value) in family.samples {
            text.sample(family.name, &[("name", name)], value);
        }
    }
    coracle_controllers::autoscaler_metrics(text);
    coracle_controllers::eviction_metrics(text);
}

async fn go_on(
    election: Option<Election>,
    config: Config,
    client: Client,
    client_for: ClientFor,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    match election {
        Some(election) => elected(election, config, client, client_for, stop).await,
        None => {
            loops(config, client_for, stop).await;
            Ok(())
        }
    }
}

/// Runs the loops whenever this process leads.
pub async fn elected(
    election: Election,
    config: Config,
    client: Client,
    client_for: ClientFor,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let clock = config.clock.clone();
    let begin = |leading| loops(config.clone(), Arc::clone(&client_for), leading);
    leading::lead_again(client, election, clock, stop, begin).await
}

async fn loops(config: Config, client_for: ClientFor, stop: CancellationToken) {
    if let Err(error) = coracle_controllers::run(config, client_for, stop).await {
        tracing::error!(%error, "the loops broke off");
    }
}
