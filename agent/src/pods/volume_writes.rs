//! One writer at a time for what a pod has on disk: its volumes are made, freshened and taken away
//! by different tasks.
//!
//! The work is done on a thread that may block. Once begun it goes on to its end, also when the
//! task that asked for it is aborted, and whoever comes next waits for that: what takes a pod's
//! directory away finds nobody writing, and what writes later finds the directory gone.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::sync::OwnedMutexGuard;

type Gate = tokio::sync::Mutex<()>;

/// By uid, for as long as somebody works or waits.
#[derive(Debug, Default)]
pub struct VolumeWrites(Mutex<HashMap<String, Weak<Gate>>>);

impl VolumeWrites {
    /// Fails only when the work panics or the process ends.
    pub async fn run<T: Send + 'static>(
        &self,
        uid: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, tokio::task::JoinError> {
        let turn = self.hold(uid).await;
        let work = move || {
            let _turn = turn;
            work()
        };
        tokio::task::spawn_blocking(work).await
    }

    /// The turn, for work that waits for others meanwhile. It must go to its end, whoever asked.
    pub async fn hold(&self, uid: &str) -> OwnedMutexGuard<()> {
        self.gate(uid).lock_owned().await
    }

    fn gate(&self, uid: &str) -> Arc<Gate> {
        let mut gates = self.0.lock();
        if let Some(gate) = gates.get(uid).and_then(Weak::upgrade) {
            return gate;
        }
        gates.retain(|_, gate| gate.strong_count() > 0);
        let gate = Arc::new(Gate::new(()));
        gates.insert(uid.to_owned(), Arc::downgrade(&gate));
        gate
    }
}

#[cfg(test)]
mod tests;
