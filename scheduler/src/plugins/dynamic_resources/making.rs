//! Makes the claim for the extended resources of a pod that has its node, and takes it away again.
//!
//! As upstream: made without devices, given them as any claim, then named in the pod's status, by
//! which the node knows what its containers get. What fails on the way is taken away when the
//! reservation is undone; what even that leaves behind is found by the pod's next attempt.

use super::write::{FINALIZER, Writer, failed};
use super::{DynamicResources, Made};
use crate::framework::StepError;
use crate::pod_info::PodInfo;
use coracle_client::patch::{self, PatchError, Precondition};
use coracle_client::{Client, key_of};
use k8s_openapi::api::core::v1::{Pod, PodExtendedResourceClaimStatus};
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// As upstream: past this many writes in the way of ours it is left.
const WRITES_MAX: u32 = 5;

/// How many claims were made, and how many could not be.
#[derive(Debug, Default)]
pub struct ClaimsMade {
    done: AtomicU64,
    failed: AtomicU64,
}

impl ClaimsMade {
    pub fn count(&self, is_done: bool) {
        let counter = if is_done { &self.done } else { &self.failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// By upstream's words for how it ended.
    pub fn by_status(&self) -> [(&'static str, u64); 2] {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("success", value(&self.done)),
            ("failure", value(&self.failed)),
        ]
    }
}

impl DynamicResources {
    pub(super) async fn make(&self, pod: &PodInfo, made: &Made) -> Result<(), StepError> {
        let writer = &self.writer;
        let api: Api<ResourceClaim> = Api::namespaced(writer.client.clone(), &pod.key.namespace);
        let asked = made.special.to_create();
        let answer = api.create(&PostParams::default(), &asked).await;
        writer.made.count(answer.is_ok());
        let created = Arc::new(answer.map_err(failed)?);
        self.has_made(pod, &created);
        let written = writer.one(pod, &created, Some(&*made.gets)).await?;
        let written = Arc::new(written);
        self.has_made(pod, &written);
        writer.name_in_pod(pod, made, &written).await
    }

    /// From now on it is known by what the API calls it.
    fn has_made(&self, pod: &PodInfo, claim: &Arc<ResourceClaim>) {
        let mut reserved = self.reserved.lock();
        let reserved = reserved.get_mut(&pod.uid);
        let Some(made) = reserved.and_then(|reserved| reserved.made.as_mut()) else {
            return;
        };
        let is_new = made.written.is_none();
        let mut devices = self.writer.devices.lock();
        if is_new {
            devices.end(made.uid());
        }
        made.written = Some(Arc::clone(claim));
        if is_new {
            devices.begin(made.uid(), &made.gets);
        }
    }
}

impl Writer {
    async fn name_in_pod(
        &self,
        pod: &PodInfo,
        made: &Made,
        claim: &ResourceClaim,
    ) -> Result<(), StepError> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.key.namespace);
        let says = PodExtendedResourceClaimStatus {
            request_mappings: made.special.mappings.clone(),
            resource_claim_name: claim.metadata.name.clone().unwrap_or_default(),
        };
        // Whole, as an attempt before may have left another there.
        let patch = Patch::Merge(json!({
            "metadata": { "uid": pod.uid },
            "status": { "extendedResourceClaimStatus": says },
        }));
        let params = PatchParams::default();
        let written = api.patch_status(&pod.key.name, &params, &patch);
        written.await.map(drop).map_err(failed)
    }

    /// Whoever binds the pod makes another.
    pub async fn unmake(&self, claim: Option<Arc<ResourceClaim>>) {
        let Some(claim) = claim else { return };
        if let Err(error) = delete(&self.client, &claim).await {
            let claim = key_of(&*claim);
            tracing::warn!(%claim, %error, "the claim for extended resources stays");
        }
    }
}

/// Deletes a claim though it is allocated. That it is gone already is as well.
pub async fn delete(client: &Client, claim: &Arc<ResourceClaim>) -> Result<(), PatchError> {
    let namespace = claim.metadata.namespace.as_deref().unwrap_or_default();
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let api: Api<ResourceClaim> = Api::namespaced(client.clone(), namespace);
    let mut now = ResourceClaim::clone(claim);
    let mut tries = 1;
    loop {
        match unprotect(&api, &now).await {
            Ok(()) => break,
            Err(error) if code(&error) == Some(404) => return Ok(()),
            Err(error) if code(&error) == Some(409) && tries < WRITES_MAX => {
                tries += 1;
                let Some(found) = api.get_opt(name).await? else {
                    return Ok(());
                };
                if found.metadata.uid != claim.metadata.uid {
                    return Ok(());
                }
                now = found;
            }
            Err(error) => return Err(error),
        }
    }
    match api.delete(name, &patch::delete_exactly(&now)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn unprotect(api: &Api<ResourceClaim>, claim: &ResourceClaim) -> Result<(), PatchError> {
    let mut new = claim.clone();
    if let Some(finalizers) = &mut new.metadata.finalizers {
        finalizers.retain(|one| one != FINALIZER);
    }
    let written = patch::object(api, claim, &new, Precondition::Unchanged).await;
    written.map(drop)
}

fn code(error: &PatchError) -> Option<u16> {
    error.status().map(|status| status.code)
}
