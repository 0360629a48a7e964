//! The end of a pod on this node: last status, nothing left on disk, deletion from the API.

use super::super::plan::Plan;
use super::super::status;
use super::Worker;
use crate::volumes;
use std::time::Duration;

/// Between two tries to remove what does not go; a mount may be busy for a moment.
const RETRY: Duration = Duration::from_secs(2);

impl Worker {
    pub(super) async fn finish(&mut self, plan: &Plan) {
        self.probes.end_all();
        self.tasks.shutdown().await;
        while let Err(error) = self.clean().await {
            tracing::warn!(
                pod = self.pod.metadata.name,
                error,
                "a pod is not cleaned up"
            );
            tokio::time::sleep(RETRY).await;
        }
        if self.is_gone {
            return;
        }
        let last = status::make(&self.view(), plan, self.context.host_ip);
        self.reporter.finish(last).await;
    }

    async fn clean(&mut self) -> Result<(), String> {
        for sandbox in &self.observed.sandboxes {
            let detached = self.context.network.detach(&sandbox.id).await;
            detached.map_err(|error| super::super::start::chain(&error))?;
            let removed = self.context.runtime.remove_sandbox(&sandbox.id).await;
            removed.map_err(|error| super::super::start::chain(&error))?;
        }
        let directory = self.context.pod_directory(&self.pod);
        let logs = self.context.log_directory(&self.pod);
        let uid = self.pod.metadata.uid.as_deref().unwrap_or_default();
        let done = self.context.volume_writes.run(uid, move || {
            volumes::tear_down(&directory).map_err(|error| error.to_string())?;
            match std::fs::remove_dir_all(&logs) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(format!("cannot remove {}: {error}", logs.display()))
                }
                _ => Ok(()),
            }
        });
        done.await.map_err(|error| error.to_string())?
    }
}
