//! The end of a pod on this node: last status, nothing left on disk, deletion from the API.

use super::super::context::Context;
use super::super::plan::Plan;
use super::super::status;
use super::super::unmount::{Extent, unmount};
use super::{Update, Worker};
use crate::runtime::SandboxId;
use k8s_openapi::api::core::v1::Pod;
use std::sync::Arc;
use std::time::Duration;

/// Between two tries to remove what does not go; a mount may be busy for a moment.
const RETRY: Duration = Duration::from_secs(2);
/// The longest pause: a driver may be away for long.
const RETRY_MAX: Duration = Duration::from_secs(16);

/// A pod that has ended.
struct Ended {
    context: Arc<Context>,
    pod: Arc<Pod>,
    sandboxes: Vec<SandboxId>,
}

impl Ended {
    async fn let_go(&self) -> bool {
        let stopped = self.stop_sandboxes().await;
        if let Err(error) = &stopped {
            tracing::warn!(error, "an ended pod keeps its address");
        }
        let uid = self.pod.metadata.uid.as_deref().unwrap_or_default();
        let unmounted = unmount(&self.context, uid, Extent::Volumes).await;
        if let Err(error) = &unmounted {
            tracing::warn!(error, "the volumes of an ended pod stay");
        }
        stopped.is_ok() && unmounted.is_ok()
    }

    /// One that was not stopped but lost, as in a reboot, still has its address.
    async fn stop_sandboxes(&self) -> Result<(), String> {
        for sandbox in &self.sandboxes {
            let stopped = self.context.stop_sandbox(sandbox).await;
            stopped.map_err(|error| error.told(&self.context, &self.pod))?;
        }
        Ok(())
    }
}

impl Worker {
    pub(super) async fn finish(&mut self, plan: &Plan) {
        self.probes.end_all();
        self.tasks.shutdown().await;
        // Whoever waits for the pod's end waits until nothing is left of it, or the agent stops.
        let done = self
            .memory
            .eviction
            .clone()
            .map(|one| one.done.clone().drop_guard());
        let mut pause = RETRY;
        while let Err(error) = self.clean().await {
            tracing::warn!(
                pod = self.pod.metadata.name,
                error,
                "a pod is not cleaned up"
            );
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY_MAX);
        }
        drop(done);
        if self.is_gone {
            return;
        }
        let last = status::make(&self.view(), plan, self.context.host.all());
        self.reporter.finish(last).await;
    }

    /// A pod that has ended is not deleted yet: its containers and logs can be looked at, but what
    /// its volumes hold is of no use any more.
    pub(super) fn settle(&mut self) {
        if !self.memory.is_settled {
            self.let_go();
            return;
        }
        // It may be evicted when it is down already.
        if let Some(eviction) = &self.memory.eviction {
            eviction.done.cancel();
        }
    }

    /// By a task that tries until it is done: a network plugin or a volume's driver may take long,
    /// and the worker hears what is wanted of it meanwhile.
    fn let_go(&mut self) {
        if std::mem::replace(&mut self.memory.is_settling, true) {
            return;
        }
        let sandboxes = self.observed.sandboxes.iter();
        let ended = Ended {
            context: self.context.clone(),
            pod: self.pod.clone(),
            sandboxes: sandboxes.map(|sandbox| sandbox.id.clone()).collect(),
        };
        let updates = self.updates.0.clone();
        self.tasks.spawn(async move {
            let mut pause = RETRY;
            while !ended.let_go().await {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(RETRY_MAX);
            }
            let _ = updates.send(Update::Settled).await;
        });
    }

    async fn clean(&mut self) -> Result<(), String> {
        for sandbox in &self.observed.sandboxes {
            let removed = self.context.remove_sandbox(&sandbox.id).await;
            removed.map_err(|error| error.told(&self.context, &self.pod))?;
        }
        let uid = self.pod.metadata.uid.as_deref().unwrap_or_default();
        unmount(&self.context, uid, Extent::All).await?;
        let logs = self.context.log_directory(&self.pod);
        let removed = tokio::task::spawn_blocking(move || match std::fs::remove_dir_all(&logs) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(format!("cannot remove {}: {error}", logs.display()))
            }
            _ => Ok(()),
        });
        removed.await.map_err(|error| error.to_string())?
    }
}

#[cfg(test)]
mod tests;
