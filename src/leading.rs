//! Work that one of several processes does at a time, chosen by a Lease.

use anyhow::Context;
use coracle_api::exposition::Text;
use coracle_client::Client;
use coracle_client::clock::Clock;
use coracle_client::lease::{Election, Held, lead};
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

/// Past the end of its lease, for a process that leads and does not renew: it should have ended.
const SILENT_SPARE: Duration = Duration::from_secs(20);

/// Looks from outside whether a process that leads renews. Of one that stands in no election there
/// is nothing to look at.
#[derive(Clone, Debug, Default)]
pub struct Watchdog {
    of: Option<(String, Held, Duration)>,
}

impl Watchdog {
    pub fn of(election: &Election) -> Self {
        let held = election.held.clone();
        Self {
            of: Some((election.name.clone(), held, election.lease_duration)),
        }
    }

    pub fn stands(&self) -> bool {
        self.of.is_some()
    }

    /// Whether it may work: it leads, or there is no election.
    pub fn may_work(&self) -> bool {
        self.of.as_ref().is_none_or(|(_, held, _)| held.is_held())
    }

    pub fn check(&self) -> Result<(), String> {
        let Some((name, held, duration)) = &self.of else {
            return Ok(());
        };
        match held.silent_for() {
            Some(silent) if silent > *duration + SILENT_SPARE => Err(format!(
                "failed election to renew leadership on lease {name}"
            )),
            _ => Ok(()),
        }
    }

    /// Under upstream's name.
    pub fn metrics(&self, text: &mut Text, component: &str) {
        if !self.stands() {
            return;
        }
        let name = "leader_election_master_status";
        let help = "Whether this process leads: 1, or 0 while it waits.";
        text.family(name, "gauge", help);
        text.sample(name, &[("name", component)], u8::from(self.may_work()));
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
    while !stop.is_cancelled() {
        let (mut ended_in_time, mut is_broken) = (true, false);
        let work = async |leading: CancellationToken| {
            let mut running = tokio::spawn(begin(leading.clone()));
            tokio::select! {
                biased;
                () = leading.cancelled() => {}
                // Another process does better.
                _ = &mut running => {
                    is_broken = true;
                    return;
                }
            }
            let rest = left(&election, stop.is_cancelled());
            ended_in_time = tokio::time::timeout(rest, running).await.is_ok();
        };
        let client = client.clone();
        lead(client, election.clone(), clock.clone(), stop.clone(), work).await;
        if is_broken {
            anyhow::bail!("the work broke off");
        }
        if !ended_in_time && !stop.is_cancelled() {
            anyhow::bail!("the Lease was lost and the work did not end");
        }
    }
    Ok(())
}

/// How long the work may take to end until another may lead: the lease runs from its last renewal.
/// That was at most a period ago, and before a loss the tries to renew it took their time as well.
fn left(election: &Election, is_stopped: bool) -> Duration {
    let tries = if is_stopped {
        Duration::ZERO
    } else {
        election.renew_deadline
    };
    let since = election.renew_period + tries + SPARE;
    election.lease_duration.saturating_sub(since)
}

/// A name of this process among those that stand.
pub fn identity() -> anyhow::Result<String> {
    let host = crate::node::host_name().context("the host has no name")?;
    Ok(format!("{host}_{}", uuid::Uuid::new_v4()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_has_what_is_left_of_the_lease() {
        let seconds = Duration::from_secs;
        let election = Election::new("a", "b");
        assert_eq!(left(&election, true), seconds(12));
        assert_eq!(left(&election, false), seconds(2));
        let short = Election {
            lease_duration: seconds(5),
            ..election
        };
        assert_eq!(left(&short, false), Duration::ZERO);
    }
}
