//! Writes a pod's status to the API server, only what changed, until the server has it.
//!
//! One task a pod: a newer status replaces one that waits. Other writers' conditions are left
//! alone, since a strategic merge patch carries those alone that changed.

use super::manifest;
use super::status::OF_RESIZES;
use super::worker::Desired;
use coracle_client::Client;
use coracle_client::patch::merge_difference;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use rand::RngExt;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The first pause after a failure; doubled up to the longest.
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_LONGEST: Duration = Duration::from_secs(10);

pub struct Reporter {
    latest: watch::Sender<Option<PodStatus>>,
    client: Client,
    desired: watch::Receiver<Desired>,
    task: JoinHandle<()>,
}

impl std::fmt::Debug for Reporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reporter").finish_non_exhaustive()
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Reporter {
    pub fn new(client: Client, desired: watch::Receiver<Desired>) -> Self {
        let (latest, statuses) = watch::channel(None);
        let task = tokio::spawn(run(client.clone(), desired.clone(), statuses));
        Self {
            latest,
            client,
            desired,
            task,
        }
    }

    /// Does not wait.
    pub fn report(&self, status: PodStatus) {
        self.latest.send_if_modified(|latest| {
            if latest.as_ref() == Some(&status) {
                return false;
            }
            *latest = Some(status);
            true
        });
    }

    /// Writes the last status, then deletes the pod from the API server.
    pub async fn finish(&mut self, status: PodStatus) {
        self.task.abort();
        let mut writer = Writer::new(self.client.clone(), self.desired.clone());
        let mut pause = RETRY_FIRST;
        loop {
            let done = async {
                writer.write(&status).await?;
                writer.delete().await
            };
            match done.await {
                Ok(()) => return,
                Err(error) => tracing::debug!(%error, "the end of a pod is not reported yet"),
            }
            if self.desired.borrow().is_gone {
                return;
            }
            pause = rest(pause).await;
        }
    }
}

/// Waits about that long and says how long the next time.
async fn rest(pause: Duration) -> Duration {
    let jitter = rand::rng().random_range(0.75..1.25);
    tokio::time::sleep(pause.mul_f64(jitter)).await;
    (pause * 2).min(RETRY_LONGEST)
}

async fn run(
    client: Client,
    desired: watch::Receiver<Desired>,
    mut statuses: watch::Receiver<Option<PodStatus>>,
) {
    let mut writer = Writer::new(client, desired);
    let mut pause = RETRY_FIRST;
    let mut shown = writer.desired.clone();
    let is_static = manifest::is_static(&shown.borrow().pod);
    loop {
        // The mirror of a static pod may come after what is to be said of it.
        tokio::select! {
            changed = statuses.changed() => if changed.is_err() { return },
            changed = shown.changed(), if is_static => if changed.is_err() { return },
        }
        loop {
            let Some(status) = statuses.borrow_and_update().clone() else {
                break;
            };
            match writer.write(&status).await {
                Ok(()) => {
                    pause = RETRY_FIRST;
                    break;
                }
                Err(error) => tracing::debug!(%error, "the status of a pod is not written yet"),
            }
            pause = rest(pause).await;
        }
    }
}

struct Writer {
    client: Client,
    desired: watch::Receiver<Desired>,
    /// What the last write returned; newer than the informer's copy for a while.
    written: Option<Pod>,
}

impl Writer {
    fn new(client: Client, desired: watch::Receiver<Desired>) -> Self {
        Self {
            client,
            desired,
            written: None,
        }
    }

    fn api(&self, pod: &Pod) -> Api<Pod> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        Api::namespaced(self.client.clone(), namespace)
    }

    /// The newest state known of the API server's copy.
    fn base(&self) -> Option<Pod> {
        let known = self.desired.borrow().shown().cloned()?;
        let is_newer = |written: &&Pod| {
            written.metadata.uid == known.metadata.uid && revision(written) > revision(&known)
        };
        let written = self.written.as_ref().filter(is_newer);
        Some(written.unwrap_or(&known).clone())
    }

    async fn write(&mut self, status: &PodStatus) -> Result<(), kube::Error> {
        if self.desired.borrow().is_gone {
            return Ok(());
        }
        let Some(base) = self.base() else {
            return Ok(()); // Said when there is somebody to be told.
        };
        let Some(body) = body(&base, status) else {
            return Ok(());
        };
        let name = base.metadata.name.as_deref().unwrap_or_default();
        let params = PatchParams::default();
        let patched = self
            .api(&base)
            .patch_status(name, &params, &Patch::Strategic(body))
            .await;
        match patched {
            Ok(pod) => {
                self.written = Some(pod);
                Ok(())
            }
            // Deleted, or another of the same name by now: nobody asks for this status.
            Err(kube::Error::Api(answer)) if answer.code == 404 || answer.code == 409 => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn delete(&self) -> Result<(), kube::Error> {
        let Some(base) = self.base() else {
            return Ok(());
        };
        let name = base.metadata.name.as_deref().unwrap_or_default();
        let params = DeleteParams::default()
            .grace_period(0)
            .preconditions(Preconditions {
                uid: base.metadata.uid.clone(),
                resource_version: None,
            });
        match self.api(&base).delete(name, &params).await {
            Err(kube::Error::Api(answer)) if answer.code == 404 || answer.code == 409 => Ok(()),
            other => other.map(drop),
        }
    }
}

fn revision(pod: &Pod) -> u64 {
    let version = pod.metadata.resource_version.as_deref();
    version
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}

/// The patch from the server's status to the new one; None when there is nothing to say.
fn body(base: &Pod, status: &PodStatus) -> Option<Value> {
    let split = |status: Option<&PodStatus>| {
        let mut value = serde_json::to_value(status).unwrap_or_default();
        let conditions = value
            .as_object_mut()
            .and_then(|status| status.remove("conditions"))
            .unwrap_or_default();
        (value, conditions.as_array().cloned().unwrap_or_default())
    };
    let (old, old_conditions) = split(base.status.as_ref());
    let (new, new_conditions) = split(Some(status));
    let gone = OF_RESIZES.iter().filter(|type_| {
        let is_in = |all: &[Value]| all.iter().any(|condition| condition["type"] == **type_);
        is_in(&old_conditions) && !is_in(&new_conditions)
    });
    let gone = gone.map(|type_| json!({ "type": type_, "$patch": "delete" }));
    let gone: Vec<_> = gone.collect();
    let mut changed: Vec<_> = new_conditions
        .into_iter()
        .filter(|condition| !old_conditions.contains(condition))
        .map(|condition| replacing(&old_conditions, condition))
        .collect();
    changed.extend(gone);
    let old = if old.is_null() { json!({}) } else { old };
    let difference = merge_difference(&old, &new);
    if difference.is_none() && changed.is_empty() {
        return None;
    }
    let mut body = difference.unwrap_or_else(|| json!({}));
    for list in ["hostIPs", "podIPs"]
        .into_iter()
        .filter(|list| !old[list].is_null())
    {
        if let Some(addresses) = body.get_mut(list).and_then(Value::as_array_mut) {
            // Else the former ones would stay beside them.
            addresses.push(json!({ "$patch": "replace" }));
        }
    }
    if !changed.is_empty() {
        body["conditions"] = changed.into();
    }
    Some(json!({ "metadata": { "uid": base.metadata.uid }, "status": body }))
}

/// The condition with null for each field that it no longer has: the patch is merged by type, and
/// what it does not name stays.
fn replacing(old: &[Value], mut condition: Value) -> Value {
    let before = old.iter().find(|old| old["type"] == condition["type"]);
    if let (Some(Value::Object(before)), Some(fields)) = (before, condition.as_object_mut()) {
        for name in before.keys() {
            fields.entry(name).or_insert(Value::Null);
        }
    }
    condition
}

#[cfg(test)]
mod tests;
