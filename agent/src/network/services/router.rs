//! The loop that keeps the kernel's table as Services and endpoints are.
//!
//! What changes within a few milliseconds becomes one batch, whose size follows what changed.
//! After a batch that the kernel refused, and when someone else was at the table, all is written
//! again in one. Runs on without the server; nothing is taken away when it stops.

use super::conntrack::{self, Served};
use super::health::{self, Health};
use super::kernel;
use super::node::Node;
use super::plan::plan;
use super::state::{Changes, State};
use super::steps::Element;
use super::suspects::Suspects;
use crate::network::nft::Batch;
use crate::network::pace::{Due, GATHER, Pace};
use crate::network::table::{Table, TableError};
use crate::network::view::{Key, View};
use coracle_client::clock::Clock;
use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Between two looks at the kernel's connections.
const FORGET_PAUSE: Duration = Duration::from_millis(500);

/// What the router works with.
#[derive(Debug)]
pub struct Router {
    pub table: Table,
    pub view: View,
    pub node: watch::Receiver<Node>,
    pub health: Arc<Health>,
    /// Told when a Service has another port for checks.
    pub ports_changed: Arc<Notify>,
    pub clock: Clock,
}

struct Running {
    router: Router,
    node: Node,
    state: State,
    /// Services whose plans are to be made again.
    changed: BTreeSet<Key>,
    /// The table is there.
    is_made: bool,
    pace: Pace,
    suspects: Suspects,
    /// Says whether it was whole.
    forgetting: Option<JoinHandle<bool>>,
}

impl Router {
    pub async fn run(self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.follow() => {}
        }
    }

    async fn follow(self) {
        // An empty view is not an empty cluster.
        self.view.known().await;
        let mut changes = self.view.subscribe();
        let mut epochs = self.table.epochs();
        let mut node = self.node.clone();
        let known = node.borrow_and_update().clone();
        self.health.set_eligible(!known.is_leaving);
        let mut running = Running {
            node: known,
            router: self,
            state: State::default(),
            changed: BTreeSet::new(),
            is_made: *epochs.borrow_and_update() > 0,
            pace: Pace::default(),
            suspects: Suspects::new(),
            forgetting: None,
        };
        loop {
            tokio::select! {
                keys = changes.changed() => {
                    running.router.health.wait();
                    running.changed.extend(keys);
                    sleep(GATHER).await;
                    running.changed.extend(changes.take());
                }
                changed = epochs.changed() => {
                    // Only with the whole agent does the sender go.
                    if changed.is_err() {
                        return;
                    }
                    running.is_made = *epochs.borrow_and_update() > 0;
                    running.pace.ask_whole();
                }
                changed = node.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let known = node.borrow_and_update().clone();
                    running.use_node(known);
                }
                due = running.pace.due() => match due {
                    Due::Sweep => {
                        running.sweep().await;
                        continue;
                    }
                    Due::Retry => {}
                },
                is_whole = done(&mut running.forgetting) => {
                    running.suspects.looked(is_whole);
                    running.forget();
                    continue;
                }
            }
            running.apply().await;
        }
    }
}

/// Until the task has ended; false when it panicked.
async fn done(task: &mut Option<JoinHandle<bool>>) -> bool {
    let Some(running) = task else {
        return pending().await;
    };
    let said = running.await.unwrap_or(false);
    *task = None;
    said
}

impl Running {
    fn use_node(&mut self, node: Node) {
        let of_frame = |node: &Node| node.pod_cidrs.clone();
        let of_plans = |node: &Node| (node.zone.clone(), node.addresses.clone(), of_frame(node));
        self.router.health.set_eligible(!node.is_leaving);
        if of_frame(&node) != of_frame(&self.node) {
            self.pace.ask_whole();
        }
        if of_plans(&node) != of_plans(&self.node) {
            self.changed.extend(self.state.keys().cloned());
        }
        self.node = node;
    }

    async fn apply(&mut self) {
        let changes = self.plan();
        let now = self.router.clock.monotonic();
        if !self.is_made || !self.pace.may_write(now) {
            return;
        }
        let applied = if self.pace.is_whole() {
            self.write_whole().await
        } else {
            let steps = self.state.steps(changes);
            self.commit(&kernel::changes(&steps)).await
        };
        match applied {
            Ok(()) => {
                self.pace.written(now, self.state.has_stale());
                self.router.health.done();
                self.forget();
            }
            Err(error) => self.failed(&error),
        }
    }

    /// Makes the plans of what changed.
    fn plan(&mut self) -> Changes {
        let mut changes = Changes::default();
        for key in std::mem::take(&mut self.changed) {
            let entry = self.router.view.get(&key).unwrap_or_default();
            let checked = health::checked(&entry, &self.node);
            if self.router.health.set(&key, checked) {
                self.router.ports_changed.notify_one();
            }
            self.state
                .update(&key, plan(&key, &entry, &self.node), &mut changes);
            if entry.service.as_deref().is_some_and(conntrack::concerns) {
                self.suspects.add(key);
            }
        }
        changes
    }

    async fn write_whole(&mut self) -> Result<(), TableError> {
        let nft = &self.router.table.nft;
        let (chains, sets) = (nft.chains().await?, nft.sets().await?);
        let there: Vec<_> = kernel::of_services(&chains).collect();
        let steps = self.state.whole(&there);
        let batch = kernel::whole(&self.node, &steps, &chains, &sets);
        tracing::debug!(bytes = batch.byte_count(), "all Services are written");
        self.commit(&batch).await
    }

    async fn commit(&self, batch: &Batch) -> Result<(), TableError> {
        Ok(self.router.table.nft.commit(batch).await?)
    }

    async fn sweep(&mut self) {
        let steps = self.state.sweep();
        match self.commit(&kernel::changes(&steps)).await {
            Ok(()) => {
                let now = self.router.clock.monotonic();
                self.pace.swept(now, self.state.has_stale());
            }
            Err(error) => self.failed(&error),
        }
    }

    fn failed(&mut self, error: &TableError) {
        let error: &dyn std::error::Error = error;
        let retry = self.pace.failed(self.router.clock.monotonic());
        let retry_ms = retry.as_millis();
        tracing::warn!(error, retry_ms, "Services are not routed as they should be");
    }

    /// Looks through the kernel's connections, beside the loop: there may be many.
    fn forget(&mut self) {
        if self.forgetting.is_some() {
            return;
        }
        let retry = self.suspects.retry();
        let mut served = Served::default();
        for key in self.suspects.look() {
            let holds = |way: &Element| self.state.holds(key, way);
            self.router.view.read(key, |entry| served.add(entry, holds));
        }
        if served.is_empty() {
            return;
        }
        self.forgetting = Some(tokio::spawn(async move {
            let looked = conntrack::forget(&served).await;
            match &looked {
                Ok(0) => {}
                Ok(count) => tracing::debug!(count, "connections to endpoints that went"),
                Err(error) => {
                    let retry_ms = retry.as_millis();
                    tracing::warn!(%error, retry_ms, "connections may go on to endpoints that went");
                }
            }
            sleep(looked.as_ref().map_or(retry, |_| FORGET_PAUSE)).await;
            looked.is_ok()
        }));
    }
}

#[cfg(test)]
mod tests;
