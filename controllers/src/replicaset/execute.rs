//! Carries out a plan: claims, creations or deletions, and the status.

use std::sync::Arc;

use coracle_client::patch;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;

use super::kind::{Replicated, Spec};
use super::plan::Plan;
use super::{Controller, ObjectKey, Requeue, status};
use crate::ownership::{self, ClaimError};
use crate::pod_control::{PodControl, pod_from};
use crate::refusal;

#[derive(Debug, thiserror::Error)]
pub(super) enum ReconcileError {
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error("cannot look whether the set is being deleted")]
    Look(#[source] kube::Error),
    #[error("cannot create pods")]
    Create(#[source] kube::Error),
    #[error("cannot delete pods")]
    Delete(#[source] kube::Error),
    #[error("cannot write the status")]
    Status(#[source] kube::Error),
}

impl<K: Replicated> Controller<K> {
    pub(super) async fn execute(
        &self,
        key: &ObjectKey,
        set: &Arc<K>,
        spec: &Spec<'_>,
        plan: Plan,
        now: Timestamp,
    ) -> Result<Requeue, ReconcileError> {
        let sets = Api::<K>::namespaced(self.client.clone(), &key.namespace);
        let pods = Api::<Pod>::namespaced(self.client.clone(), &key.namespace);
        ownership::execute(&sets, set.as_ref(), &pods, &plan.adopt, &plan.release).await?;
        if plan.create > 0 && !self.may_replace(&sets, set, &plan).await? {
            return Ok(Requeue::Never); // That it goes brings the next pass, if it is to have one.
        }
        let managed = self.manage(key, set, spec, &plan, &pods).await;
        let failure = managed.as_ref().err().map(failure_text);
        let next = status::next(set.as_ref(), spec, &plan, failure.as_deref(), now);
        let check = status::next_check(&plan.active, spec.min_ready_seconds, now);
        if next != set.status() {
            let news = plan.create > 0
                || !plan.delete.is_empty()
                || status::is_news(&set.status(), &next, spec);
            if !news
                && managed.is_ok()
                && let Some(pause) = self.own_writes.pause(key)
            {
                return Ok(check.map_or(Requeue::Never, Requeue::After).within(pause));
            }
            let written = patch::replace_status(&sets, &set.with_status(next)).await;
            self.own_writes.ended(set.as_ref(), &written);
            written.map_err(ReconcileError::Status)?;
        }
        managed?;
        Ok(check.map_or(Requeue::Never, Requeue::After))
    }

    async fn manage(
        &self,
        key: &ObjectKey,
        set: &Arc<K>,
        spec: &Spec<'_>,
        plan: &Plan,
        pods: &Api<Pod>,
    ) -> Result<(), ReconcileError> {
        let control = PodControl {
            key,
            owner: set.as_ref(),
            pods,
            expectations: &self.expectations,
            recorder: &self.recorder,
        };
        if plan.create > 0 {
            self.expectations.expect_creations(key, plan.create);
            let pod = pod_from(set.as_ref(), spec.template);
            let created = control.create(plan.create, |_| pod.clone()).await;
            created.map_err(ReconcileError::Create)?;
        }
        if !plan.delete.is_empty() {
            let uids = plan
                .delete
                .iter()
                .filter_map(|pod| pod.metadata.uid.clone());
            self.expectations.expect_deletions(key, uids);
            let deleted = control.delete(plan.delete.iter().map(Arc::as_ref)).await;
            deleted.map_err(ReconcileError::Delete)?;
        }
        Ok(())
    }
}

impl<K: Replicated> Controller<K> {
    /// Pods that went may have gone because their set goes, of which the cache may hear later than
    /// of them: the server is asked before others take their place.
    async fn may_replace(
        &self,
        sets: &Api<K>,
        set: &Arc<K>,
        plan: &Plan,
    ) -> Result<bool, ReconcileError> {
        let told = usize::try_from(set.status().replicas).unwrap_or(0);
        if told <= plan.active.len() {
            return Ok(true);
        }
        let lives = ownership::lives(sets, set.as_ref()).await;
        lives.map_err(ReconcileError::Look)
    }
}

/// What the condition says about a failure.
fn failure_text(error: &ReconcileError) -> String {
    match error {
        ReconcileError::Create(source) => refusal::message(source),
        ReconcileError::Delete(source) => {
            format!("unable to delete pods: {}", refusal::message(source))
        }
        other => other.to_string(),
    }
}
