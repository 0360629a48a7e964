//! Work that one of several processes does at a time, chosen by a Lease.

use anyhow::Context;
use coracle_client::Client;
use coracle_client::clock::Clock;
use coracle_client::lease::{Election, lead};
use std::future::Future;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What is left of a lease that could not be renewed when the work must have ended.
const SPARE: Duration = Duration::from_secs(1);

/// Of the leases of a server's own work: it leads for as long as it runs, as no other process writes
/// its store, so that the Lease is only there to be seen by others, and is rarely written.
pub fn of_server(lease: &str) -> Election {
    Election {
        lease_duration: Duration::from_secs(24 * 60 * 60),
        renew_period: Duration::from_secs(6 * 60 * 60),
        ..Election::new(lease, "coracle-server")
    }
}

/// Begins the work whenever this process leads, and has it end when it no longer does.
pub async fn lead_again<F>(
    client: Client,
    election: Election,
    clock: Clock,
    stop: CancellationToken,
    begin: impl Fn(CancellationToken) -> F,
) -> anyhow::Result<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    // Another may lead once the lease has run out.
    let stop_max = election
        .lease_duration
        .saturating_sub(election.renew_deadline);
    let stop_max = stop_max.saturating_sub(SPARE);
    while !stop.is_cancelled() {
        let mut ended_in_time = true;
        let work = async |leading: CancellationToken| {
            let running = tokio::spawn(begin(leading.clone()));
            leading.cancelled().await;
            ended_in_time = tokio::time::timeout(stop_max, running).await.is_ok();
        };
        let (client, election) = (client.clone(), election.clone());
        lead(client, election, clock.clone(), stop.clone(), work).await;
        if !ended_in_time && !stop.is_cancelled() {
            anyhow::bail!("the Lease was lost and the work did not end");
        }
    }
    Ok(())
}

/// A name of this process among those that stand.
pub fn identity() -> anyhow::Result<String> {
    let host = crate::node::host_name().context("the host has no name")?;
    Ok(format!("{host}_{}", uuid::Uuid::new_v4()))
}
