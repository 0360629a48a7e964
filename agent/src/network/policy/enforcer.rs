//! The loop that keeps the kernel's rules as policies, pods and labels are.
//!
//! What changes within a few milliseconds becomes one batch, whose size follows what changed.
//! After a batch that the kernel refused, and when someone else was at the table, all is written
//! again in one. Nothing is taken away when it stops: what is in the kernel is enforced on.

use super::kernel;
use super::shared::{Shared, Source};
use super::state::Changes;
use super::voice::Voice;
use crate::network::nft::{Batch, NftError};
use crate::network::pace::{Due, GATHER, Pace, RETRY_MAX, RETRY_MIN};
use crate::network::table::{Table, TableError};
use crate::network::view::{Key, View};
use coracle_client::clock::Clock;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// For the server to say what there is, before what is on disk replaces what a former agent left
/// in the kernel, which may be newer; and before a node that knows nothing starts pods.
const GRACE: Duration = Duration::from_secs(5);
/// The Service on whose addresses the node answers names.
const NAMES: &str = "kube-system/kube-dns";

/// Of a former agent, in the kernel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Left {
    Nothing,
    /// No pod is isolated.
    Frame,
    Rules,
}

const LEFT: &str = "Pods wait for the server to say which NetworkPolicies there are: those that a \
                    former agent enforced stay until then, and what it knew of them is lost";

#[derive(Debug)]
pub struct Enforcer {
    pub shared: Arc<Shared>,
    pub table: Table,
    pub view: View,
    pub clock: Clock,
    pub voice: Voice,
}

struct Running {
    enforcer: Enforcer,
    pace: Pace,
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
            pace: Pace::default(),
        };
        loop {
            running.apply().await;
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
                    running.pace.ask_whole();
                }
                due = running.pace.due() => match due {
                    Due::Sweep => running.sweep().await,
                    Due::Retry => {}
                },
            }
        }
    }

    /// Until there is something to act on: who knows nothing does not replace what someone knew.
    async fn known(&self) {
        let left = found(|| self.left()).await;
        let shared = &self.shared;
        if shared.source() == Source::Disk && left == Left::Nothing {
            return;
        }
        // What it is matters, not whether it came in time.
        _ = timeout(GRACE, shared.answer()).await;
        if shared.source() == Source::Nothing && left == Left::Rules {
            self.voice.say(LEFT);
            shared.set_held(true);
            shared.reached(Source::Server).await;
            shared.set_held(false);
        }
    }

    async fn left(&self) -> Result<Left, NftError> {
        let nft = &self.table.nft;
        let sets = nft.sets().await?;
        let mut left = Left::Nothing;
        for map in kernel::maps(&sets) {
            left = Left::Frame;
            if !nft.elements(map).await?.is_empty() {
                return Ok(Left::Rules);
            }
        }
        Ok(left)
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

/// Asks until it is told, less often each time.
async fn found<T, Answer>(ask: impl Fn() -> Answer) -> T
where
    Answer: Future<Output = Result<T, NftError>>,
{
    let mut pause = RETRY_MIN;
    loop {
        match ask().await {
            Ok(found) => return found,
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "what is enforced of NetworkPolicies cannot be read");
            }
        }
        sleep(pause).await;
        pause = (pause * 2).min(RETRY_MAX);
    }
}

impl Running {
    async fn apply(&mut self) {
        let now = self.enforcer.clock.monotonic();
        if !self.pace.may_write(now) {
            return;
        }
        let applied = if self.pace.is_whole() {
            self.write_whole().await
        } else {
            self.write_changes().await
        };
        match applied {
            // The end of the list is told.
            Ok(None) => self.pace.idle(),
            Ok(Some(number)) => {
                self.enforcer.shared.has_applied(number);
                self.pace.written(now, self.has_stale());
            }
            Err(error) => self.failed(&error),
        }
    }

    /// The number that is reached; None while a list is under way.
    async fn write_whole(&self) -> Result<Option<u64>, TableError> {
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

    async fn write_changes(&self) -> Result<Option<u64>, TableError> {
        let Some((number, changes)) = self.enforcer.shared.take(|state| state.flush()) else {
            return Ok(None);
        };
        self.commit_changes(&changes).await?;
        Ok(Some(number))
    }

    /// Other changes come with the list, if one is under way.
    async fn sweep(&mut self) {
        let changes = self.enforcer.shared.sweep();
        match self.commit_changes(&changes).await {
            Ok(()) => {
                let now = self.enforcer.clock.monotonic();
                self.pace.swept(now, self.has_stale());
            }
            Err(error) => self.failed(&error),
        }
    }

    fn has_stale(&self) -> bool {
        self.enforcer.shared.read(|state| state.has_stale())
    }

    async fn commit_changes(&self, changes: &Changes) -> Result<(), TableError> {
        if changes.is_empty() {
            return Ok(());
        }
        self.commit(&kernel::changes(changes)).await
    }

    async fn commit(&self, batch: &Batch) -> Result<(), TableError> {
        Ok(self.enforcer.table.nft.commit(batch).await?)
    }

    fn failed(&mut self, error: &TableError) {
        let error: &dyn std::error::Error = error;
        let retry = self.pace.failed(self.enforcer.clock.monotonic());
        let retry_ms = retry.as_millis();
        tracing::warn!(
            error,
            retry_ms,
            "NetworkPolicies are not enforced as they should be"
        );
    }
}

#[cfg(test)]
mod tests;
