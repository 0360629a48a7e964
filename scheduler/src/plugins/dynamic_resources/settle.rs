//! Waits until drivers have made the devices of a pod ready.

use super::readiness::{self, Readiness};
use super::{DynamicResources, NAME, claims};
use crate::framework::StepError;
use coracle_client::clock::Instant;
use coracle_client::{ObjectKey, key_of};
use k8s_openapi::api::resource::v1::ResourceClaim;
use std::sync::Arc;
use std::time::Duration;

/// Claims tell when they change; this finds that their time is over.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Upstream's bound: a watch that is later than this shows nothing else either.
const SEEN_MAX: Duration = Duration::from_secs(120);

impl DynamicResources {
    pub(super) async fn wait(&self, claims: Vec<ObjectKey>) -> Result<(), StepError> {
        let changed = self.writer.devices.lock().changed();
        let end = Instant::now() + self.args.binding_timeout;
        loop {
            // Before the look, so that no change after it is missed.
            let notified = changed.notified();
            if self.look(&claims)? {
                return Ok(());
            }
            if Instant::now() >= end {
                return given_up("device binding timeout".to_owned());
            }
            let soon = (Instant::now() + LOOK_EVERY).min(end);
            drop(tokio::time::timeout_at(soon, notified).await);
        }
    }

    /// Waits until the watch shows a claim that was made, so that its devices are counted by that
    /// from then on.
    pub(super) async fn see(&self, made: &Arc<ResourceClaim>) {
        let changed = self.writer.devices.lock().changed();
        let end = Instant::now() + SEEN_MAX;
        loop {
            let notified = changed.notified();
            if self.is_seen(made) || Instant::now() >= end {
                return self.writer.devices.lock().end(claims::uid(made));
            }
            drop(tokio::time::timeout_at(end, notified).await);
        }
    }

    /// Or was seen, and is gone.
    fn is_seen(&self, made: &Arc<ResourceClaim>) -> bool {
        let mut devices = self.writer.devices.lock();
        devices.written(made);
        let shown = devices.claim(&key_of(&**made));
        let is_shown = shown.is_some_and(|shown| claims::uid(shown) == claims::uid(made));
        is_shown || !devices.is_under_way(claims::uid(made))
    }

    fn look(&self, claims: &[ObjectKey]) -> Result<bool, StepError> {
        let devices = self.writer.devices.lock();
        let mut is_ready = true;
        for key in claims {
            let Some(claim) = devices.claim(key) else {
                return given_up(format!("could not find ResourceClaim \"{key}\""));
            };
            match readiness::of(claim) {
                Readiness::Ready => {}
                Readiness::Failed(why) => return given_up(why),
                Readiness::Waiting => {
                    is_ready = false;
                    let now = self.writer.clock.now();
                    if readiness::is_over(claim, self.args.binding_timeout, now) {
                        let why = format!("device binding timeout: claim={}", key.name);
                        return given_up(why);
                    }
                }
            }
        }
        Ok(is_ready)
    }
}

fn given_up<T>(why: String) -> Result<T, StepError> {
    Err(StepError::failed(NAME, why))
}
