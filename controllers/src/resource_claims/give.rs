//! Makes the claims of a pod, tells it of them, and reserves those that are allocated for a pod
//! which did not come by the scheduler.

use std::sync::Arc;

use coracle_client::ObjectKey;
use coracle_client::events::{self, EventType};
use k8s_openapi::api::core::v1::{Pod, PodResourceClaim};
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use super::plan::{self, Named};
use super::{Controller, MANAGER, ReconcileError};
use crate::{pods, refusal};

impl Controller {
    pub(super) async fn give(&self, key: &ObjectKey) -> Result<(), ReconcileError> {
        let Some(pod) = self.pods.get(key) else {
            return Ok(());
        };
        // What has ended is given nothing anew: it would be taken back at once.
        if pods::is_deleting(&pod) || plan::is_done(&pod) {
            return Ok(());
        }
        let mut statuses = Vec::new();
        for claim in plan::claims(&pod) {
            match self.name_of(key, &pod, claim).await {
                Ok(None) => {}
                Ok(Some(name)) => {
                    statuses.push(json!({"name": claim.name, "resourceClaimName": name}));
                }
                Err(why) => {
                    let (claim, reason) = (claim.name.clone(), "FailedResourceClaimCreation");
                    let error = ReconcileError::Make { claim, why };
                    let about = events::reference(pod.as_ref());
                    let text = error.to_string();
                    self.recorder
                        .event(&about, EventType::Warning, reason, text);
                    return Err(error);
                }
            }
        }
        self.tell(&pod, statuses).await?;
        if pods::node_name(&pod).is_empty() {
            return Ok(()); // The scheduler reserves.
        }
        for claim in plan::claims(&pod) {
            self.reserve(key, &pod, claim).await?;
        }
        Ok(())
    }

    /// Of a claim that is made from a template the name; makes it where there is none.
    async fn name_of(
        &self,
        key: &ObjectKey,
        pod: &Pod,
        claim: &PodResourceClaim,
    ) -> Result<Option<String>, String> {
        match plan::named(pod, claim) {
            Named::Direct(_) | Named::NotNeeded => return Ok(None),
            Named::Generated(name) => {
                let known = self.claims.get(&ObjectKey::new(&key.namespace, name));
                if known.is_some_and(|known| plan::is_for(&known, pod)) {
                    return Ok(Some(name.to_owned()));
                }
            }
            Named::Missing => {}
        }
        let Some(template) = &claim.resource_claim_template_name else {
            return Ok(None);
        };
        if let Some(made) = self.made_for(pod, &claim.name) {
            return Ok(made.metadata.name.clone());
        }
        let found = self
            .templates
            .get(&ObjectKey::new(&key.namespace, template));
        let found = found.ok_or_else(|| {
            format!(
                "resource claim template {template:?}: resourceclaimtemplate.resource.k8s.io \
                 {template:?} not found"
            )
        })?;
        let wanted = plan::from_template(pod, &claim.name, &found);
        let claims: Api<ResourceClaim> = Api::namespaced(self.client.clone(), &key.namespace);
        let made = claims.create(&PostParams::default(), &wanted).await;
        // Upstream names it by the name that it does not have yet.
        let made =
            made.map_err(|error| format!("create ResourceClaim : {}", refusal::message(&error)))?;
        let (name, uid) = (made.metadata.name.clone(), pod.metadata.uid.clone());
        let mut all = self.made.lock();
        let of_pod = all.entry(uid.unwrap_or_default()).or_default();
        of_pod.insert(claim.name.clone(), Arc::new(made));
        Ok(name)
    }

    /// In the cache, or made a moment ago.
    fn made_for(&self, pod: &Pod, name: &str) -> Option<Arc<ResourceClaim>> {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let known = self.claims.by_owner_uid(uid);
        let mut known = known.into_iter();
        if let Some(known) = known.find(|claim| plan::is_made_for(claim, pod, name)) {
            return Some(known);
        }
        let made = self.made.lock();
        made.get(uid)?.get(name).cloned()
    }

    /// All of them each time: what is not applied any more would be taken off.
    async fn tell(
        &self,
        pod: &Pod,
        statuses: Vec<serde_json::Value>,
    ) -> Result<(), ReconcileError> {
        let is_known = |status: &serde_json::Value| {
            let known = plan::statuses(pod).iter();
            let mut known = known.map(|one| (&one.name, &one.resource_claim_name));
            known.any(|(name, claim)| {
                status["name"] == **name && status["resourceClaimName"] == json!(claim)
            })
        };
        if statuses.iter().all(is_known) {
            return Ok(());
        }
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let wanted = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": namespace, "name": name, "uid": pod.metadata.uid},
            "status": {"resourceClaimStatuses": statuses},
        });
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let parameters = PatchParams::apply(MANAGER).force();
        let wanted = Patch::Apply(wanted);
        match pods.patch_status(name, &parameters, &wanted).await {
            Ok(_) => Ok(()),
            Err(error) if refusal::is_not_found(&error) => Ok(()),
            Err(error) => Err(ReconcileError::Tell(error)),
        }
    }

    async fn reserve(
        &self,
        key: &ObjectKey,
        pod: &Pod,
        claim: &PodResourceClaim,
    ) -> Result<(), ReconcileError> {
        let (name, is_own) = match plan::named(pod, claim) {
            Named::Direct(name) => (name, false),
            Named::Generated(name) => (name, true),
            Named::NotNeeded | Named::Missing => return Ok(()),
        };
        let Some(known) = self.claims.get(&ObjectKey::new(&key.namespace, name)) else {
            return Ok(());
        };
        if is_own && !plan::is_for(&known, pod) || !plan::wants_reservation(&known, pod) {
            return Ok(());
        }
        let mut wanted = ResourceClaim::clone(&known);
        let status = wanted.status.get_or_insert_default();
        let reserved = status.reserved_for.get_or_insert_default();
        reserved.push(plan::reservation(pod));
        let claims: Api<ResourceClaim> = Api::namespaced(self.client.clone(), &key.namespace);
        let parameters = PostParams::default();
        match claims.replace_status(name, &parameters, &wanted).await {
            Ok(_) => Ok(()),
            Err(error) => Err(ReconcileError::Reserve(name.to_owned(), error)),
        }
    }
}
