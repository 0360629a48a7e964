//! Ends the pods that must make room for another: off the cycle, and bounded.
//!
//! The pod that they make room for is in flight meanwhile, so it is not looked at before all were
//! asked to go. Never decides which pods go.

use crate::binding::Places;
use crate::cache::Cache;
use crate::framework::Preemption;
use crate::plugins::default_preemption::PREEMPTED;
use crate::pod_info::PodInfo;
use coracle_client::Client;
use coracle_client::clock::Clock;
use coracle_client::events::{EventType, Recorder};
use coracle_client::patch;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Victims asked to go at a time: hides the API's latency without a burst of requests.
const AT_A_TIME: usize = 16;
/// All are asked within this, or the pod is tried again: it must not stay in flight for ever.
const EVICTION_MAX: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
pub enum EvictError {
    #[error("{pod} was not asked to go")]
    Refused {
        pod: String,
        #[source]
        source: kube::Error,
    },
    #[error("not all pods were asked to go within {} s", EVICTION_MAX.as_secs())]
    TooSlow,
}

#[derive(Clone)]
pub struct Evictor {
    pub client: Client,
    pub recorder: Recorder,
    pub clock: Clock,
    pub cache: Arc<Mutex<Cache>>,
    pub places: Places,
}

impl std::fmt::Debug for Evictor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Evictor")
    }
}

impl Evictor {
    /// Asks all victims to go that are not going already; ends with the first that cannot be asked.
    pub async fn evict(&self, preemptor: &PodInfo, plan: &Preemption) -> Result<(), EvictError> {
        let work = async {
            self.release(preemptor, &plan.node).await;
            let staying = plan.victims.iter().filter(|pod| !pod.is_deleting);
            let victims = stream::iter(staying).map(Ok);
            victims
                .try_for_each_concurrent(AT_A_TIME, |victim| async {
                    let refused = |source| EvictError::Refused {
                        pod: victim.key.to_string(),
                        source,
                    };
                    self.end(preemptor, victim, &plan.node)
                        .await
                        .map_err(refused)
                })
                .await
        };
        let within = tokio::time::timeout(EVICTION_MAX, work).await;
        within.unwrap_or(Err(EvictError::TooSlow))
    }

    /// Pods of lower priority that were promised the node look for another one.
    async fn release(&self, preemptor: &PodInfo, node: &str) {
        let below = self.cache.lock().nominated_below(node, preemptor.priority);
        for pod in below {
            let body = json!({
                "metadata": { "uid": pod.uid },
                "status": { "nominatedNodeName": null },
            });
            if let Err(error) = self.patch_status(&pod, body).await
                && !is_gone(&error)
            {
                // They are no worse off than before.
                tracing::warn!(pod = %pod.key, %error, "its nomination was not cleared");
            }
        }
    }

    async fn end(
        &self,
        preemptor: &PodInfo,
        victim: &PodInfo,
        node: &str,
    ) -> Result<(), kube::Error> {
        let mut text = format!("Preempted by pod {} on node {node}", preemptor.uid);
        if self.places.call_off(&victim.uid) {
            // It is on its node in the cache alone, and may find another one.
            text.push_str(" (in kube-scheduler memory).");
            self.tell(preemptor, victim, text);
            return Ok(());
        }
        // Its binding failed or was called off since: it waits again, and is in nobody's way.
        if !self.cache.lock().is_on(&victim.uid, node) {
            return Ok(());
        }
        let ended = async {
            if let Some(body) = self.mark(preemptor, victim) {
                self.patch_status(victim, body).await?;
            }
            let pods: Api<Pod> = Api::namespaced(self.client.clone(), &victim.key.namespace);
            let params = patch::delete_of_uid(&victim.uid);
            pods.delete(&victim.key.name, &params).await?;
            Ok(())
        };
        match ended.await {
            Err(error) if is_gone(&error) => return Ok(()),
            result => result?,
        }
        self.tell(preemptor, victim, text);
        Ok(())
    }

    fn tell(&self, preemptor: &PodInfo, victim: &PodInfo, text: String) {
        tracing::info!(pod = %preemptor.key, victim = %victim.key, text, "preempted");
        let about = victim.reference();
        self.recorder
            .event(&about, EventType::Normal, "Preempted", text);
    }

    async fn patch_status(&self, pod: &PodInfo, body: Value) -> Result<(), kube::Error> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.key.namespace);
        let (params, patch) = (PatchParams::default(), Patch::Strategic(body));
        pods.patch_status(&pod.key.name, &params, &patch).await?;
        Ok(())
    }

    /// Says why the pod ends; `None` when it says so.
    fn mark(&self, preemptor: &PodInfo, victim: &PodInfo) -> Option<Value> {
        let message = format!(
            "{}: preempting to accommodate a higher priority pod",
            preemptor.scheduler_name()
        );
        let known = victim
            .disruption
            .as_deref()
            .filter(|known| known.status == "True");
        if known.is_some_and(|known| {
            known.reason.as_deref() == Some(PREEMPTED) && known.message.as_ref() == Some(&message)
        }) {
            return None;
        }
        let since = known.and_then(|known| known.last_transition_time.clone());
        let mut condition = json!({
            "type": "DisruptionTarget",
            "status": "True",
            "reason": PREEMPTED,
            "message": message,
            "lastTransitionTime": since.unwrap_or_else(|| self.clock.time()),
        });
        if let Some(generation) = victim.generation {
            condition["observedGeneration"] = json!(generation);
        }
        // The uid keeps the condition off a namesake created meanwhile.
        Some(json!({
            "metadata": { "uid": victim.uid },
            "status": { "conditions": [condition] },
        }))
    }
}

/// The pod, or the one of this uid, is there no more.
fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 404 | 409))
}

#[cfg(test)]
mod tests;
