//! Takes a claim back from pods that do not run any more, and deletes one that was made for such a
//! pod.

use coracle_client::ObjectKey;
use coracle_client::patch::delete_exactly;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimConsumerReference as Consumer};
use kube::Api;
use kube::api::PostParams;

use super::{Controller, ReconcileError, plan};
use crate::refusal;

impl Controller {
    pub(super) async fn take_back(&self, key: &ObjectKey) -> Result<(), ReconcileError> {
        let Some(claim) = self.claims.get(key) else {
            return Ok(());
        };
        let mut remaining = Vec::new();
        for consumer in plan::reserved_for(&claim) {
            if !plan::is_pod(consumer) || self.may_run(key, consumer).await? {
                remaining.push(consumer.clone());
            }
        }
        let is_free = remaining.is_empty();
        let release = plan::release(&claim, remaining);
        match self.write(key, &claim, release).await {
            Ok(()) => {}
            Err(error) if refusal::is_not_found(&error) => return Ok(()),
            Err(error) => return Err(ReconcileError::TakeBack(error)),
        }
        if is_free && self.is_left_over(key, &claim) {
            let claims: Api<ResourceClaim> = Api::namespaced(self.client.clone(), &key.namespace);
            let exactly = delete_exactly(claim.as_ref());
            match claims.delete(&key.name, &exactly).await {
                Ok(_) => {}
                Err(error) if refusal::is_not_found(&error) => {}
                Err(error) => return Err(ReconcileError::Delete(error)),
            }
        }
        Ok(())
    }

    /// A pod that the cache does not show may be too new for it: the server is asked.
    async fn may_run(&self, key: &ObjectKey, consumer: &Consumer) -> Result<bool, ReconcileError> {
        let pod_key = ObjectKey::new(&key.namespace, &consumer.name);
        if let Some(pod) = self.pods.get(&pod_key) {
            let is_it = pod.metadata.uid.as_ref() == Some(&consumer.uid);
            return Ok(is_it && !plan::is_done(&pod));
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        match pods.get_metadata_opt(&consumer.name).await {
            Ok(found) => {
                let uid = found.and_then(|found| found.metadata.uid);
                Ok(uid.as_ref() == Some(&consumer.uid))
            }
            Err(error) => Err(ReconcileError::Look(consumer.name.clone(), error)),
        }
    }

    async fn write(
        &self,
        key: &ObjectKey,
        claim: &ResourceClaim,
        release: plan::Release,
    ) -> Result<(), kube::Error> {
        let claims: Api<ResourceClaim> = Api::namespaced(self.client.clone(), &key.namespace);
        let parameters = PostParams::default();
        let mut newest = match release.status {
            Some(wanted) => {
                claims
                    .replace_status(&key.name, &parameters, &wanted)
                    .await?
            }
            None => claim.clone(),
        };
        if release.drop_finalizer {
            let finalizers = newest.metadata.finalizers.get_or_insert_default();
            finalizers.retain(|one| one != plan::FINALIZER);
            claims.replace(&key.name, &parameters, &newest).await?;
        }
        Ok(())
    }

    /// Made for a pod that has ended, or for one whose name another has now. The garbage collector
    /// deletes those of pods that are gone.
    fn is_left_over(&self, key: &ObjectKey, claim: &ResourceClaim) -> bool {
        let Some((name, uid)) = plan::owner(claim) else {
            return false;
        };
        let pod = self.pods.get(&ObjectKey::new(&key.namespace, name));
        pod.is_some_and(|pod| pod.metadata.uid.as_deref() != Some(uid) || plan::is_done(&pod))
    }
}
