//! Says of claims that want more than they have that somebody else must enlarge their volume: the
//! resizer of a CSI driver, which is named on claims whose volume is of a kind that was once built in.
//!
//! Reads claims and volumes; writes one annotation of claims. Enlarges nothing itself: no kind of
//! volume that can be enlarged is built in any more.

use std::sync::Arc;

use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{self, EventType, Recorder};
use coracle_client::informer::{Change, Informer};
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of, volumes};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::{Context, refusal};

mod plan; // Pure. Start reading here.

use plan::Plan;

pub(crate) const NAME: &str = "persistentvolume-expander";
/// As many as upstream's.
const WORKERS: usize = 10;
/// Upstream's name of the component, which events carry.
const COMPONENT: &str = "volume_expand";
const REASON: &str = "ExternalExpanding";

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    run_loop(context).boxed()
}

async fn run_loop(context: Context) {
    let controller = Arc::new(Controller {
        client: context.client.clone(),
        claims: context.informers.get(),
        volumes: context.informers.get(),
        queue: WorkQueue::new(),
        recorder: context.recorder(COMPONENT),
    });
    let told = Arc::clone(&controller);
    controller
        .claims
        .on_change(move |change| told.changed(change));
    if !controller.claims.synced().await || !controller.volumes.synced().await {
        return;
    }
    let queue = controller.queue.clone();
    let (objects, recorder) = (controller.claims.clone(), controller.recorder.clone());
    let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
        .telling(objects, recorder);
    control_loop::run(NAME, queue, WORKERS, reconcile, context.shutdown).await;
}

struct Controller {
    client: Client,
    claims: Informer<PersistentVolumeClaim>,
    volumes: Informer<PersistentVolume>,
    queue: WorkQueue<ObjectKey>,
    recorder: Recorder,
}

#[derive(Debug, thiserror::Error)]
enum ExpandError {
    #[error("persistent Volume is not bound to PVC being updated : {0}")]
    NotBound(ObjectKey),
    #[error("cannot name the resizer of the claim {claim}")]
    Name {
        claim: ObjectKey,
        source: kube::Error,
    },
}

impl Controller {
    /// What a claim has was told of before, unless the loop begins.
    fn changed(&self, change: &Change<PersistentVolumeClaim>) {
        let matters = match change {
            Change::Added(_) => true,
            Change::Updated { old, new } => plan::has_grown(old, new),
            Change::Deleted(_) | Change::Resync(_) => false,
        };
        if matters && plan::wants_more(change.object()) {
            self.queue.add(key_of(change.object().as_ref()));
        }
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, ExpandError> {
        let claim = self.claims.get(key);
        let Some(claim) = claim.filter(|claim| plan::wants_more(claim)) else {
            return Ok(Requeue::Never);
        };
        let name = ObjectKey::new("", volumes::volume_name(&claim));
        let volume = self.volumes.get(&name);
        let volume = volume.filter(|volume| volumes::is_held_for(volume, &claim));
        let volume = volume.ok_or_else(|| ExpandError::NotBound(key.clone()))?;
        let plan = plan::plan(&volume);
        self.tell(&claim, &plan);
        if let Plan::Migrated { driver, .. } = plan
            && volumes::annotation(&claim.metadata, plan::RESIZER) != Some(driver)
        {
            self.name(key, &claim, driver).await?;
        }
        Ok(Requeue::Never)
    }

    fn tell(&self, claim: &PersistentVolumeClaim, plan: &Plan) {
        let about = events::reference(claim);
        self.recorder
            .event(&about, EventType::Normal, REASON, plan.message());
    }

    async fn name(
        &self,
        key: &ObjectKey,
        claim: &PersistentVolumeClaim,
        driver: &str,
    ) -> Result<(), ExpandError> {
        let claims: Api<PersistentVolumeClaim> =
            Api::namespaced(self.client.clone(), &key.namespace);
        let patch = Patch::Merge(json!({ "metadata": {
            "uid": claim.metadata.uid,
            "annotations": { plan::RESIZER: driver },
        } }));
        let params = PatchParams::default();
        match claims.patch_status(&key.name, &params, &patch).await {
            Ok(_) => Ok(()),
            Err(error) if refusal::is_not_found(&error) => Ok(()),
            Err(source) => Err(ExpandError::Name {
                claim: key.clone(),
                source,
            }),
        }
    }
}

#[cfg(test)]
mod tests;
