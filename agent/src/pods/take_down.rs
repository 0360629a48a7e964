//! Ends sandboxes: first the network, whose plugins may need the namespaces, then the rest.

use super::Context;
use crate::error::chain;
use crate::network::NetworkError;
use crate::runtime::{RuntimeError, SandboxId};
use coracle_client::events::EventType;
use k8s_openapi::api::core::v1::Pod;

#[derive(Debug, thiserror::Error)]
pub enum TakeDownError {
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl TakeDownError {
    /// All of it. A network that keeps its sandbox is told to the pod, in upstream's words.
    pub fn told(&self, context: &Context, pod: &Pod) -> String {
        let error = chain(self);
        if let Self::Network(_) = self {
            let uid = pod.metadata.uid.as_deref().unwrap_or_default();
            let message = format!(
                "error killing pod: failed to \"KillPodSandbox\" for {uid:?} with \
                 KillPodSandboxError: {error:?}"
            );
            context.event(pod, EventType::Warning, "FailedKillPod", message);
        }
        error
    }
}

impl Context {
    /// Nothing of it runs after this; its record stays.
    pub async fn stop_sandbox(&self, id: &SandboxId) -> Result<(), TakeDownError> {
        self.network.detach(id).await?;
        Ok(self.runtime.stop_sandbox(id).await?)
    }

    /// With its record it would be forgotten that it has an address.
    pub async fn remove_sandbox(&self, id: &SandboxId) -> Result<(), TakeDownError> {
        self.network.detach(id).await?;
        Ok(self.runtime.remove_sandbox(id).await?)
    }
}
