//! Takes back the condition `DisruptionTarget` of a pod that was not disrupted after all: whoever
//! announced it was ended in between, and Jobs count such pods.

use std::time::Duration;

use coracle_client::patch;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use kube::Api;

use super::{Controller, ObjectKey, ReconcileError, Requeue};
use crate::{pods, refusal};

const DISRUPTION_TARGET: &str = "DisruptionTarget";
/// A node's own word: the pod ends, however long that takes.
const BY_KUBELET: &str = "TerminationByKubelet";
/// How long the pod has time to be deleted. Upstream's.
const STALE_AFTER: Duration = Duration::from_secs(2 * 60);

/// How long until the condition is stale; `None` for a pod that has none, or is ending.
pub(super) fn stale_in(pod: &Pod, now: Timestamp) -> Option<Duration> {
    let condition = pods::condition(pod, DISRUPTION_TARGET)?;
    let is_said = condition.status == "True" && condition.reason.as_deref() != Some(BY_KUBELET);
    if !is_said || pods::is_deleting(pod) || pods::is_finished(pod) {
        return None;
    }
    let since = condition.last_transition_time.as_ref();
    let since = since.map_or(Duration::MAX, |since| {
        Duration::try_from(now.duration_since(since.0)).unwrap_or(Duration::ZERO)
    });
    Some(STALE_AFTER.saturating_sub(since))
}

impl Controller {
    pub(super) async fn clean(&self, key: &ObjectKey) -> Result<Requeue, ReconcileError> {
        let Some(pod) = self.pods.get(key) else {
            return Ok(Requeue::Never);
        };
        match stale_in(&pod, self.clock.now()) {
            None => return Ok(Requeue::Never),
            Some(Duration::ZERO) => {}
            Some(left) => return Ok(Requeue::After(left)),
        }
        let mut cleaned = (*pod).clone();
        let status = cleaned.status.get_or_insert_default();
        for condition in status.conditions.iter_mut().flatten() {
            if condition.type_ == DISRUPTION_TARGET {
                *condition = PodCondition {
                    type_: DISRUPTION_TARGET.to_owned(),
                    status: "False".to_owned(),
                    last_transition_time: Some(self.clock.time()),
                    observed_generation: pod.metadata.generation,
                    ..PodCondition::default()
                };
            }
        }
        let pods = Api::namespaced(self.client.clone(), &key.namespace);
        match patch::replace_status(&pods, &cleaned).await {
            Ok(_) => Ok(Requeue::Never),
            Err(error) if refusal::is_not_found(&error) => Ok(Requeue::Never),
            Err(error) => Err(ReconcileError::Condition(error)),
        }
    }
}
