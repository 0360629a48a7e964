//! Carries a plan out: the volume, the claim, then the events. Each write insists on the state
//! that was looked at, or on the one that the write before it left.

use coracle_client::patch;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::Api;

use super::plan::{Change, Plan};
use super::{Controller, ReconcileError};

impl Controller {
    pub(super) async fn execute(&self, plan: Plan) -> Result<(), ReconcileError> {
        if let Some(change) = plan.volume {
            let written = Box::pin(self.write_volume(change)).await;
            written.map_err(ReconcileError::Volume)?;
        }
        if let Some(change) = plan.claim {
            let written = Box::pin(self.write_claim(change)).await;
            written.map_err(ReconcileError::Claim)?;
        }
        for told in plan.told {
            self.recorder
                .event(&told.about, told.kind, told.reason, told.message);
        }
        if let Some(claim) = plan.claim_next {
            self.claim_queue.add(claim);
        }
        Ok(())
    }

    async fn write_volume(&self, change: Change<PersistentVolume>) -> Result<(), kube::Error> {
        let Change { was, wanted } = change;
        let api = Api::all(self.client.clone());
        let status = wanted.status.clone();
        let mut last = PersistentVolume {
            status: was.status.clone(),
            ..wanted
        };
        if last != was {
            last = patch::replace(&api, &last).await?;
        }
        if status != was.status {
            last.status = status;
            patch::replace_status(&api, &last).await?;
        }
        Ok(())
    }

    async fn write_claim(&self, change: Change<PersistentVolumeClaim>) -> Result<(), kube::Error> {
        let Change { was, wanted } = change;
        let namespace = wanted.metadata.namespace.as_deref().unwrap_or_default();
        let api = Api::namespaced(self.client.clone(), namespace);
        let status = wanted.status.clone();
        let mut last = PersistentVolumeClaim {
            status: was.status.clone(),
            ..wanted.clone()
        };
        if last != was {
            last = patch::replace(&api, &last).await?;
        }
        if status != was.status {
            last.status = status;
            patch::replace_status(&api, &last).await?;
        }
        Ok(())
    }
}
