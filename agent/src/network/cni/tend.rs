//! What goes on beside the pods: which network there is and how it is, and what was lost.

use super::attachment::{Attachments, Found};
use super::configuration::{self, ConfigurationError, Network, Version};
use super::{Cni, Inner, UNLISTED};
use crate::file_watch::FileWatch;
use crate::runtime::SandboxId;
use rustix::fs::inotify::WatchFlags;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A look at the directory, and at the plugins' STATUS, without a reason.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Between two tries to take a lost sandbox off its network, or to find plugins idle.
const RETRY: Duration = Duration::from_secs(16);
const COLLECT_EVERY: Duration = Duration::from_secs(60 * 60);

/// Of the node's network, as far as plugins make it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum State {
    /// No configuration is there.
    Unused,
    Ready,
    Problem(String),
}

impl State {
    pub fn of(found: &Result<Option<Network>, ConfigurationError>) -> Self {
        match found {
            Ok(None) => Self::Unused,
            Ok(Some(_)) => Self::Ready,
            Err(error) => Self::Problem(crate::error::chain(error)),
        }
    }
}

impl Cni {
    /// Knows the state of the network, until `stop`.
    pub async fn watch(self, stop: CancellationToken) {
        loop {
            // Before the look, so that nothing is missed; there need not be a directory.
            let watched = watch(&self.0);
            let state = self.0.look(&stop).await;
            if stop.is_cancelled() {
                // What was broken off says nothing of the network.
                return;
            }
            self.0.state.send_if_modified(|known| {
                let is_new = *known != state;
                if let (State::Problem(problem), true) = (&state, is_new) {
                    tracing::warn!(problem, "network plugins cannot be used");
                }
                *known = state;
                is_new
            });
            let changed = async {
                match &watched {
                    Some(watch) => watch.changed().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                // What cannot be watched is looked at.
                Ok(()) = changed => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Takes what is lost off its network, and has plugins clean up, until `stop`.
    pub async fn sweep(self, stop: CancellationToken) {
        // Not before the sandboxes that there are were told.
        tokio::select! {
            () = stop.cancelled() => return,
            () = self.0.has_lost.notified() => {}
        }
        // What cannot be taken back is valid to plugins: it keeps nothing else from being collected.
        let mut collect_at = tokio::time::Instant::now();
        loop {
            let is_clean = self.0.take_back(&stop).await;
            if tokio::time::Instant::now() >= collect_at && self.0.collect(&stop).await {
                collect_at = tokio::time::Instant::now() + COLLECT_EVERY;
            }
            let again = tokio::time::Instant::now() + RETRY;
            let next = if is_clean {
                collect_at.max(again)
            } else {
                again
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }
}

fn watch(inner: &Inner) -> Option<FileWatch> {
    let flags = WatchFlags::CREATE
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::MOVE
        | WatchFlags::DELETE
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF;
    FileWatch::open(&[(&inner.configurations, flags)]).ok()
}

impl Inner {
    async fn look(&self, stop: &CancellationToken) -> State {
        let found = configuration::find(&self.configurations);
        if let Ok(Some(network)) = &found
            && network.version >= Version::V1_1_0
            && let Err(error) = self.runner.status(network, stop).await
        {
            return State::Problem(crate::error::chain(&error));
        }
        State::of(&found)
    }

    /// What former agents left, where it could not be listed at the start. False to be called again.
    async fn list_former(&self) -> bool {
        if self.former.lock().is_listed() {
            return true;
        }
        let attachments = self.attachments.clone();
        let listed = tokio::task::spawn_blocking(move || attachments.sandboxes()).await;
        match listed.map_err(std::io::Error::other).flatten() {
            Ok(found) => {
                let mut former = self.former.lock();
                former.list(found);
                self.lost.lock().extend(former.lost());
                true
            }
            Err(error) => {
                tracing::warn!(%error, "{UNLISTED}");
                false
            }
        }
    }

    /// True when nothing is lost any more.
    async fn take_back(&self, stop: &CancellationToken) -> bool {
        let is_listed = self.list_former().await;
        let lost = self.lost.lock().clone();
        for sandbox in lost {
            match self.detach(&sandbox, stop).await {
                Ok(_) => {
                    self.lost.lock().remove(&sandbox);
                }
                // What was broken off says nothing of plugins.
                Err(_) if stop.is_cancelled() => return false,
                Err(error) => {
                    let error = crate::error::chain(&error);
                    tracing::warn!(error, "a lost sandbox stays on its network");
                }
            }
        }
        is_listed && self.lost.lock().is_empty()
    }

    /// False when plugins are busy with pods: those do not wait for this.
    async fn collect(&self, stop: &CancellationToken) -> bool {
        let Ok(_alone) = self.exclusion.try_write() else {
            return false;
        };
        let Ok(Some(network)) = configuration::find(&self.configurations) else {
            return true;
        };
        if network.version < Version::V1_1_0 || network.disable_gc {
            return true;
        }
        let (attachments, of) = (self.attachments.clone(), network.clone());
        let valid = tokio::task::spawn_blocking(move || valid(&attachments, &of)).await;
        let valid = match valid.map_err(std::io::Error::other).flatten() {
            Ok(valid) => valid,
            Err(error) => {
                tracing::warn!(%error, "network plugins are not cleaned up");
                return true;
            }
        };
        if let Err(error) = self.runner.collect(&network, &valid, stop).await
            && !stop.is_cancelled()
        {
            let error = crate::error::chain(&error);
            tracing::warn!(error, "network plugins are not cleaned up");
        }
        true
    }
}

/// The sandboxes on the network, and those that may be: what is not among them loses it.
fn valid(attachments: &Attachments, network: &Network) -> std::io::Result<Vec<SandboxId>> {
    let mut valid = Vec::new();
    for sandbox in attachments.sandboxes()? {
        let is_on_it = match attachments.find(&sandbox)? {
            Found::Known(known) => known.network.name == network.name,
            Found::Nothing | Found::Unreadable => true,
        };
        if is_on_it {
            valid.push(sandbox);
        }
    }
    Ok(valid)
}

#[cfg(test)]
mod tests;
