//! What a user sees of a decision: events and the PodScheduled condition.

use crate::pod_info::PodInfo;
use coracle_client::Client;
use coracle_client::clock::Clock;
use coracle_client::events::{EventType, Recorder};
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub struct Reporter {
    client: ClientHandle,
    recorder: Recorder,
    clock: Clock,
}

/// A client without anything to show in debug output.
#[derive(Clone)]
struct ClientHandle(Client);

impl std::fmt::Debug for ClientHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl Reporter {
    pub fn new(client: Client, recorder: Recorder, clock: Clock) -> Self {
        Self {
            client: ClientHandle(client),
            recorder,
            clock,
        }
    }

    /// Kept while the status stays False.
    fn transition(&self, pod: &PodInfo) -> Time {
        condition(pod)
            .filter(|known| known.status == "False")
            .and_then(|known| known.last_transition_time.clone())
            .unwrap_or_else(|| self.clock.time())
    }

    pub fn scheduled(&self, pod: &PodInfo, node: &str) {
        let text = format!("Successfully assigned {} to {node}", pod.key);
        let about = pod.reference();
        self.recorder
            .event(&about, EventType::Normal, "Scheduled", text);
    }

    /// Tells that no node was found, or that the attempt failed; the condition is written only
    /// where it says something new. `nominated` is the node that the pod was promised, or empty to
    /// take a promise back, where the API must be told.
    pub async fn failed(
        &self,
        pod: &PodInfo,
        reason: &'static str,
        message: String,
        nominated: Option<&str>,
    ) {
        let about = pod.reference();
        self.recorder.event(
            &about,
            EventType::Warning,
            "FailedScheduling",
            message.clone(),
        );
        if nominated.is_none() && says(pod, reason, &message) {
            return;
        }
        // The uid keeps the condition off a namesake created meanwhile.
        let mut body = json!({
            "metadata": { "uid": pod.uid },
            "status": { "conditions": [{
                "type": "PodScheduled",
                "status": "False",
                "reason": reason,
                "message": message,
                "lastTransitionTime": self.transition(pod),
            }] },
        });
        if let Some(node) = nominated {
            body["status"]["nominatedNodeName"] = match node {
                "" => Value::Null,
                node => node.into(),
            };
        }
        let api: Api<Pod> = Api::namespaced(self.client.0.clone(), &pod.key.namespace);
        let params = PatchParams::default();
        match api
            .patch_status(&pod.key.name, &params, &Patch::Strategic(body))
            .await
        {
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => {}
            Err(error) => tracing::warn!(pod = %pod.key, %error, "condition not written"),
            Ok(_) => {}
        }
    }
}

fn condition(pod: &PodInfo) -> Option<&PodCondition> {
    pod.condition("PodScheduled")
}

fn says(pod: &PodInfo, reason: &str, message: &str) -> bool {
    condition(pod).is_some_and(|known| {
        known.status == "False"
            && known.reason.as_deref() == Some(reason)
            && known.message.as_deref() == Some(message)
    })
}
