//! Takes a claim back from pods that do not run any more, and deletes one that was made for such a
//! pod.

use coracle_client::ObjectKey;
use coracle_client::patch::delete_exactly;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
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
            if !plan::is_pod(consumer) || self.may_run(key, &consumer.name, &consumer.uid).await? {
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
        if is_free && self.is_left_over(key, &claim).await? {
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

    /// A pod that the cache does not show may be too new for it, also where another of its name is
    /// still there: the server is asked.
    async fn may_run(
        &self,
        key: &ObjectKey,
        name: &str,
        uid: &str,
    ) -> Result<bool, ReconcileError> {
        let cached = self.pods.get(&ObjectKey::new(&key.namespace, name));
        if let Some(pod) = cached.filter(|pod| pod.metadata.uid.as_deref() == Some(uid)) {
            return Ok(!plan::is_done(&pod));
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        match pods.get_metadata_opt(name).await {
            Ok(found) => {
                let found = found.and_then(|found| found.metadata.uid);
                Ok(found.as_deref() == Some(uid))
            }
            Err(error) => Err(ReconcileError::Look(name.to_owned(), error)),
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
    async fn is_left_over(
        &self,
        key: &ObjectKey,
        claim: &ResourceClaim,
    ) -> Result<bool, ReconcileError> {
        let Some((name, uid)) = plan::owner(claim) else {
            return Ok(false);
        };
        let is_known = (self.pods.get(&ObjectKey::new(&key.namespace, name))).is_some();
        Ok(is_known && !self.may_run(key, name, uid).await?)
    }
}
