//! Sees to it that a container's image is there, by its pull policy, with back-off.

use super::back_off::{BackOff, Pace};
use super::context::Context;
use super::state::spec;
use crate::images::{ImageInfo, RegistryCredentials};
use crate::runtime::RuntimeError;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use coracle_client::events::EventType;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ImageVolumeSource, Pod, Secret};
use kube::Api;
use parking_lot::Mutex;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// After this many images that failed to come, the oldest failures are forgotten.
const FAILURES_MAX: usize = 1000;
/// After a failed pull the container says so for this long, then that it waits.
const SHOW_FAILURE_SECONDS: i64 = 5;

/// An image that a pod needs.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub image: &'a str,
    pub policy: Option<&'a str>,
    /// Whose events tell of it; the pod's own for a volume.
    pub container: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    pub fn by(container: &'a Container) -> Self {
        Self {
            image: container.image.as_deref().unwrap_or_default(),
            policy: container.image_pull_policy.as_deref(),
            container: Some(&container.name),
        }
    }

    pub fn of_volume(source: &'a ImageVolumeSource) -> Self {
        Self {
            image: source.reference.as_deref().unwrap_or_default(),
            policy: source.pull_policy.as_deref(),
            container: None,
        }
    }

    fn event(&self, context: &Context, pod: &Pod, type_: EventType, reason: &str, message: &str) {
        match self.container {
            Some(name) => context.container_event(pod, name, type_, reason, message),
            None => context.event(pod, type_, reason, message),
        }
    }
}

/// Why there is no image; `reason` and `message` are those of the waiting state.
#[derive(Debug)]
pub struct NoImage {
    pub reason: &'static str,
    pub message: String,
    pub retry_at: Timestamp,
}

#[derive(Debug)]
struct Failure {
    back_off: BackOff,
    at: Timestamp,
    message: String,
}

/// Remembers which pulls failed, by pod and image.
#[derive(Debug, Default)]
pub struct Puller(Mutex<HashMap<(String, String), Failure>>);

impl Puller {
    fn waits(&self, key: &(String, String), now: Timestamp) -> Option<(Timestamp, String)> {
        let failures = self.0.lock();
        let failure = failures.get(key)?;
        let until = failure.back_off.until(failure.at, now)?;
        Some((until, failure.message.clone()))
    }

    fn failed(&self, key: (String, String), message: String, now: Timestamp) {
        let mut failures = self.0.lock();
        if failures.len() >= FAILURES_MAX {
            let oldest = failures.iter().min_by_key(|(_, failure)| failure.at);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                failures.remove(&oldest);
            }
        }
        let last = failures.get(&key).map(|failure| &failure.back_off);
        let back_off = BackOff::after(Pace::CONTAINER, last, now, now);
        let failure = Failure {
            back_off,
            at: now,
            message,
        };
        failures.insert(key, failure);
    }
}

pub async fn ensure(
    context: &Context,
    pod: &Pod,
    wanted: Wanted<'_>,
) -> Result<ImageInfo, NoImage> {
    let image = wanted.image;
    let now = context.clock.now();
    let default = || coracle_api::pod_spec::defaults::pull_policy(image);
    let policy = wanted.policy.unwrap_or_else(default);
    let present = match context.runtime.image_status(image).await {
        Ok(present) => present,
        Err(error) => return Err(uninspected(context, pod, wanted, &error)),
    };
    let tell = |type_, reason: &str, message: &str| {
        wanted.event(context, pod, type_, reason, message);
    };
    if let Some(present) = present.filter(|_| policy != "Always") {
        let message = format!(
            "Container image {image:?} already present on machine and can be accessed by the pod"
        );
        tell(EventType::Normal, "Pulled", &message);
        return Ok(present);
    }
    if policy == "Never" {
        let message = format!("Container image {image:?} is not present with pull policy of Never");
        tell(EventType::Warning, "ErrImageNeverPull", &message);
        return Err(NoImage {
            reason: "ErrImageNeverPull",
            message,
            retry_at: super::start::retry_at(now),
        });
    }
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    let key = (uid, image.to_owned());
    if let Some((retry_at, last)) = context.images.waits(&key, now) {
        let message = format!("Back-off pulling image {image:?}");
        tell(EventType::Normal, "BackOff", &message);
        return Err(NoImage {
            reason: "ImagePullBackOff",
            message: format!("{message}: ErrImagePull: {last}"),
            retry_at,
        });
    }
    pull(context, pod, wanted, key).await
}

fn uninspected(context: &Context, pod: &Pod, wanted: Wanted<'_>, error: &RuntimeError) -> NoImage {
    let image = wanted.image;
    let (reason, message) = match error {
        RuntimeError::Invalid(_) => (
            "InvalidImageName",
            format!(
                "Failed to apply default image tag {image:?}: couldn't parse image name {image:?}: \
                 {error}"
            ),
        ),
        _ => (
            "ImageInspectError",
            format!("Failed to inspect image {image:?}: {error}"),
        ),
    };
    wanted.event(context, pod, EventType::Warning, "InspectFailed", &message);
    NoImage {
        reason,
        message,
        retry_at: super::start::retry_at(context.clock.now()),
    }
}

async fn pull(
    context: &Context,
    pod: &Pod,
    wanted: Wanted<'_>,
    key: (String, String),
) -> Result<ImageInfo, NoImage> {
    let image = wanted.image;
    let credentials = credentials(context, pod).await;
    let message = format!("Pulling image {image:?}");
    wanted.event(context, pod, EventType::Normal, "Pulling", &message);
    let begun = context.clock.monotonic();
    match context.runtime.pull_image(image, &credentials).await {
        Ok(info) => {
            let took = go_duration(begun.elapsed());
            let message = format!(
                "Successfully pulled image {image:?} in {took} ({took} including waiting). Image \
                 size: {} bytes.",
                info.size_bytes
            );
            wanted.event(context, pod, EventType::Normal, "Pulled", &message);
            context.images.0.lock().remove(&key);
            Ok(info)
        }
        Err(error) => {
            let error = error.to_string();
            let now = context.clock.now();
            let message = format!("Failed to pull image {image:?}: {error}");
            wanted.event(context, pod, EventType::Warning, "Failed", &message);
            context.images.failed(key, error.clone(), now);
            Err(NoImage {
                reason: "ErrImagePull",
                message: error,
                retry_at: super::start::after(now, SHOW_FAILURE_SECONDS),
            })
        }
    }
}

/// As Go prints it, to the millisecond: `1.234s`, `56ms`, `1m2.5s`.
fn go_duration(took: Duration) -> String {
    let milliseconds = took.as_millis();
    if milliseconds < 1000 {
        return format!("{milliseconds}ms");
    }
    let minutes = milliseconds / 60_000;
    let rest = format!("{:.3}", (milliseconds % 60_000) as f64 / 1000.0);
    let rest = rest.trim_end_matches('0').trim_end_matches('.');
    if minutes == 0 {
        format!("{rest}s")
    } else {
        format!("{minutes}m{rest}s")
    }
}

#[derive(Deserialize)]
struct DockerConfig {
    #[serde(default)]
    auths: BTreeMap<String, DockerAuth>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DockerAuth {
    username: String,
    password: String,
    auth: String,
}

/// Those of the pod's pull secrets. One that is missing or malformed is passed over, as upstream
/// does: the image may be public.
async fn credentials(context: &Context, pod: &Pod) -> Vec<RegistryCredentials> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<Secret> = Api::namespaced(context.client.clone(), namespace);
    let mut found = Vec::new();
    for reference in spec(pod).image_pull_secrets.iter().flatten() {
        match api.get_opt(&reference.name).await {
            Ok(Some(secret)) => found.extend(of_secret(&secret)),
            Ok(None) => {
                let message = format!(
                    "Unable to retrieve some image pull secrets ({}); attempting to pull the image \
                     may not succeed.",
                    reference.name
                );
                let reason = "FailedToRetrieveImagePullSecret";
                context.event(pod, EventType::Warning, reason, message);
            }
            Err(error) => tracing::warn!(%error, "cannot read a pull secret"),
        }
    }
    found
}

fn of_secret(secret: &Secret) -> Vec<RegistryCredentials> {
    let data = secret.data.as_ref();
    let value = |key: &str| {
        data.and_then(|data| data.get(key))
            .map(|value| value.0.as_slice())
    };
    let auths = if let Some(config) = value(".dockerconfigjson") {
        serde_json::from_slice::<DockerConfig>(config).map(|config| config.auths)
    } else if let Some(config) = value(".dockercfg") {
        serde_json::from_slice(config)
    } else {
        return Vec::new();
    };
    let entry = |(registry, auth): (String, DockerAuth)| {
        let decoded = BASE64_STANDARD.decode(&auth.auth).ok();
        let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        let pair = decoded.as_deref().and_then(|text| text.split_once(':'));
        let (username, password) = match pair {
            Some((username, password)) => (username.to_owned(), password.to_owned()),
            None => (auth.username, auth.password),
        };
        RegistryCredentials {
            registry,
            username,
            password,
        }
    };
    auths.unwrap_or_default().into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests;
