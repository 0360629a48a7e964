//! Writes allocation and reservation into claims, and takes them back.

use super::{ClaimsMade, NAME, Reserved, claims, making};
use crate::devices::{Devices, allocation};
use crate::framework::{Release, StepError};
use crate::pod_info::PodInfo;
use coracle_client::clock::Clock;
use coracle_client::patch::{self, PatchError, Precondition};
use coracle_client::{Client, key_of};
use k8s_openapi::api::resource::v1::{
    AllocationResult, ResourceClaim, ResourceClaimConsumerReference as Consumer,
};
use kube::Api;
use parking_lot::Mutex;
use std::sync::Arc;

/// Keeps a claim while it is allocated.
pub(super) const FINALIZER: &str = "resource.kubernetes.io/delete-protection";
/// As upstream: past this many writes in the way of ours the pod is tried again.
const WRITES_MAX: u32 = 5;

/// What is written with.
#[derive(Clone)]
pub struct Writer {
    pub client: Client,
    pub clock: Clock,
    pub devices: Arc<Mutex<Devices>>,
    /// Counts the claims that are made.
    pub made: Arc<ClaimsMade>,
}

impl Writer {
    /// All claims of a pod that are not for it yet.
    pub async fn reserve(&self, pod: &PodInfo, reserved: &Reserved) -> Result<(), StepError> {
        for (claim, gets) in &reserved.claims {
            if claims::is_reserved_for(claim, pod) {
                continue;
            }
            let written = self.one(pod, claim, gets.as_deref()).await?;
            let mut devices = self.devices.lock();
            devices.written(&Arc::new(written));
            if gets.is_some() {
                devices.end(claims::uid(claim));
            }
        }
        Ok(())
    }

    /// Others may write meanwhile what does not matter here: then it is tried on what they wrote.
    pub(super) async fn one(
        &self,
        pod: &PodInfo,
        claim: &ResourceClaim,
        gets: Option<&AllocationResult>,
    ) -> Result<ResourceClaim, StepError> {
        let api: Api<ResourceClaim> = Api::namespaced(self.client.clone(), &pod.key.namespace);
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        let mut now = claim.clone();
        let mut tries = 1;
        loop {
            match self.write(&api, pod, now, gets).await {
                Err(StepError::Failed { source, .. })
                    if tries < WRITES_MAX && is_conflict(&*source) =>
                {
                    tries += 1;
                    now = api.get(name).await.map_err(failed)?;
                    if now.metadata.uid != claim.metadata.uid {
                        let key = key_of(claim);
                        return given_up(format!("claim {key} got deleted in the meantime"));
                    }
                }
                done => return done,
            }
        }
    }

    async fn write(
        &self,
        api: &Api<ResourceClaim>,
        pod: &PodInfo,
        mut claim: ResourceClaim,
        gets: Option<&AllocationResult>,
    ) -> Result<ResourceClaim, StepError> {
        let key = key_of(&claim);
        if claim.metadata.deletion_timestamp.is_some() {
            return given_up(format!("claim {key} got deleted in the meantime"));
        }
        match (gets, allocation(&claim)) {
            (Some(_), Some(_)) => {
                return given_up(format!(
                    "claim {key} got allocated elsewhere in the meantime"
                ));
            }
            (None, None) => {
                return given_up(format!(
                    "claim {key} got deallocated elsewhere in the meantime"
                ));
            }
            _ => {}
        }
        if gets.is_some() {
            claim = protected(api, claim).await?;
        }
        let mut new = claim.clone();
        let status = new.status.get_or_insert_default();
        let mut gets = gets.cloned().or(status.allocation.take());
        if let Some(allocation) = &mut gets {
            let time = &mut allocation.allocation_timestamp;
            time.get_or_insert_with(|| self.clock.time());
        }
        status.allocation = gets;
        status.reserved_for.get_or_insert_default().push(Consumer {
            api_group: None,
            resource: "pods".to_owned(),
            name: pod.key.name.clone(),
            uid: pod.uid.clone(),
        });
        let written = patch::status(api, &claim, &new, Precondition::Unchanged).await;
        Ok(written.map_err(failed)?.unwrap_or(new))
    }

    /// Takes the pod from the claims that were reserved for it. What fails is found by the pod's
    /// next attempt.
    pub async fn unreserve(&self, uid: &str, claims: Vec<Arc<ResourceClaim>>) {
        for claim in claims {
            let key = key_of(&*claim);
            let api: Api<ResourceClaim> = Api::namespaced(self.client.clone(), &key.namespace);
            let mut new = ResourceClaim::clone(&claim);
            if let Some(reserved) = new.status.as_mut().and_then(|it| it.reserved_for.as_mut()) {
                reserved.retain(|one| one.uid != uid);
            }
            match patch::status(&api, &claim, &new, Precondition::Unchanged).await {
                Ok(Some(written)) => self.devices.lock().written(&Arc::new(written)),
                Ok(None) => {}
                Err(error) => tracing::warn!(%key, %error, "the claim stays reserved"),
            }
        }
    }
}

/// Frees what a claim has, so that it can get something else, or deletes it.
pub async fn release(client: &Client, release: &Release) -> Result<(), PatchError> {
    let claim = match release {
        Release::Devices(claim) => claim,
        Release::Claim(claim) => return making::delete(client, claim).await,
    };
    let namespace = claim.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<ResourceClaim> = Api::namespaced(client.clone(), namespace);
    let mut new = ResourceClaim::clone(claim);
    if let Some(status) = &mut new.status {
        status.allocation = None;
        status.devices = None;
        status.reserved_for = None;
    }
    let written = patch::status(&api, claim, &new, Precondition::Unchanged).await;
    written.map(drop)
}

async fn protected(
    api: &Api<ResourceClaim>,
    claim: ResourceClaim,
) -> Result<ResourceClaim, StepError> {
    let mut new = claim.clone();
    let finalizers = new.metadata.finalizers.get_or_insert_default();
    if finalizers.iter().any(|one| one == FINALIZER) {
        return Ok(claim);
    }
    finalizers.push(FINALIZER.to_owned());
    let written = patch::object(api, &claim, &new, Precondition::Unchanged).await;
    Ok(written.map_err(failed)?.unwrap_or(new))
}

fn is_conflict(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let status = error
        .downcast_ref::<PatchError>()
        .and_then(PatchError::status);
    status.is_some_and(|status| status.code == 409)
}

pub(super) fn failed(error: impl std::error::Error + Send + Sync + 'static) -> StepError {
    StepError::Failed {
        plugin: NAME,
        source: Box::new(error),
    }
}

fn given_up<T>(why: String) -> Result<T, StepError> {
    Err(StepError::failed(NAME, why))
}
