//! The loop that keeps the kernel's rules as policies, pods and labels are.
//!
//! What changes within a few milliseconds becomes one batch, whose size follows what changed.
//! After a batch that the kernel refused, and when someone else was at the table, all is written
//! again in one. Nothing is taken away when it stops: what is in the kernel is enforced on.

use super::kernel;
use super::shared::{Shared, Source};
use super::state::Changes;
use crate::network::nft::{Batch, CommitError, NftError};
use crate::network::table::Table;
use crate::network::view::{Key, View};
use coracle_client::clock::{Clock, Instant};
use std::future::pending;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// What follows within this goes into the same batch.
const GATHER: Duration = Duration::from_millis(5);
/// After a batch before the chains that it emptied are deleted.
const SWEEP_AFTER: Duration = Duration::from_secs(1);
/// After a batch that was not taken; doubled up to the second each time.
const RETRY_MIN: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// For the server to say what there is, before what is on disk replaces what a former agent left
/// in the kernel, which may be newer; and before a node that knows nothing starts pods.
const GRACE: Duration = Duration::from_secs(5);
/// The Service on whose addresses the node answers names.
const NAMES: &str = "kube-system/kube-dns";

#[derive(Debug, thiserror::Error)]
enum ApplyError {
    #[error(transparent)]
    Read(#[from] NftError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

#[derive(Debug)]
pub struct Enforcer {
    pub shared: Arc<Shared>,
    pub table: Table,
    pub view: View,
    pub clock: Clock,
}

struct Running {
    enforcer: Enforcer,
    /// All is to be written, not the changes alone.
    is_whole: bool,
    sweep_at: Option<Instant>,
    retry_at: Option<Instant>,
    retry: Duration,
}

impl Enforcer {
    pub async fn run(self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.follow() => {}
        }
    }

    async fn follow(self) {
        let mut epochs = self.table.epochs();
        if epochs.wait_for(|epoch| *epoch > 0).await.is_err() {
            return;
        }
        epochs.mark_unchanged();
        let mut services = self.view.subscribe();
        self.look_at_names();
        self.known().await;
        let mut running = Running {
            enforcer: self,
            is_whole: true,
            sweep_at: None,
            retry_at: None,
            retry: RETRY_MIN,
        };
        loop {
            running.apply().await;
            let (sweep_at, retry_at) = (running.sweep_at, running.retry_at);
            tokio::select! {
                () = running.enforcer.shared.changed.notified() => sleep(GATHER).await,
                keys = services.changed() => {
                    if keys.contains(&Key::from(NAMES)) {
                        running.enforcer.look_at_names();
                    }
                }
                changed = epochs.changed() => {
                    // Only with the whole agent does the sender go.
                    if changed.is_err() {
                        return;
                    }
                    running.is_whole = true;
                }
                () = at(sweep_at) => running.sweep().await,
                () = at(retry_at) => {}
            }
        }
    }

    /// Until there is something to act on.
    async fn known(&self) {
        let sets = self.table.nft.sets().await;
        let is_there = sets.is_ok_and(|sets| kernel::is_there(&sets));
        if self.shared.source() == Source::Disk && !is_there {
            return;
        }
        if timeout(GRACE, self.shared.reached(Source::Refused))
            .await
            .is_ok()
        {
            return;
        }
        if self.shared.source() == Source::Nothing && is_there {
            tracing::warn!(
                "NetworkPolicies stay as a former agent left them until the server tells"
            );
            self.shared.reached(Source::Disk).await;
        }
    }

    fn look_at_names(&self) {
        let addresses = self.view.read(NAMES, |entry| {
            let service = entry.service.as_deref();
            let service = service.filter(|service| service.cluster_domain.is_some());
            service.map_or_else(Vec::new, |service| service.cluster_ips.to_vec())
        });
        let addresses: Vec<IpAddr> = addresses.unwrap_or_default();
        self.shared.set_names(&addresses);
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

impl Running {
    async fn apply(&mut self) {
        let now = self.enforcer.clock.monotonic();
        if self.retry_at.is_some_and(|at| now < at) {
            return;
        }
        let applied = if self.is_whole {
            self.write_whole().await
        } else {
            self.write_changes().await
        };
        match applied {
            Ok(None) => {}
            Ok(Some(number)) => {
                self.is_whole = false;
                self.retry_at = None;
                self.retry = RETRY_MIN;
                self.enforcer.shared.has_applied(number);
                let has_stale = self.enforcer.shared.read(|state| state.has_stale());
                self.sweep_at = has_stale.then_some(now + SWEEP_AFTER);
            }
            Err(error) => self.failed(&error),
        }
    }

    /// The number that is reached; None while a list is under way.
    async fn write_whole(&self) -> Result<Option<u64>, ApplyError> {
        let nft = &self.enforcer.table.nft;
        let (chains, sets) = (nft.chains().await?, nft.sets().await?);
        let there: Vec<u32> = kernel::of_pods(&chains).collect();
        let taken = self.enforcer.shared.take(|state| state.whole(there));
        let Some((number, changes)) = taken else {
            return Ok(None);
        };
        let batch = kernel::whole(&changes, &chains, &sets);
        tracing::debug!(bytes = batch.byte_count(), "all of policies is written");
        self.commit(&batch).await?;
        Ok(Some(number))
    }

    async fn write_changes(&self) -> Result<Option<u64>, ApplyError> {
        let Some((number, changes)) = self.enforcer.shared.take(|state| state.flush()) else {
            return Ok(None);
        };
        self.commit_changes(&changes).await?;
        Ok(Some(number))
    }

    async fn sweep(&mut self) {
        self.sweep_at = None;
        let Some((_, changes)) = self.enforcer.shared.take(|state| state.sweep()) else {
            return;
        };
        if let Err(error) = self.commit_changes(&changes).await {
            self.failed(&error);
        }
    }

    async fn commit_changes(&self, changes: &Changes) -> Result<(), ApplyError> {
        if changes.is_empty() {
            return Ok(());
        }
        self.commit(&kernel::changes(changes)).await
    }

    async fn commit(&self, batch: &Batch) -> Result<(), ApplyError> {
        Ok(self.enforcer.table.nft.commit(batch).await?)
    }

    fn failed(&mut self, error: &ApplyError) {
        let error: &dyn std::error::Error = error;
        let retry_ms = self.retry.as_millis();
        tracing::warn!(
            error,
            retry_ms,
            "NetworkPolicies are not enforced as they should be"
        );
        self.is_whole = true;
        self.sweep_at = None;
        self.retry_at = Some(self.enforcer.clock.monotonic() + self.retry);
        self.retry = (self.retry * 2).min(RETRY_MAX);
    }
}
