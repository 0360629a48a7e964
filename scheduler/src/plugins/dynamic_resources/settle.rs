//! Waits until drivers have made the devices of a pod ready.

use super::readiness::{self, Readiness};
use super::{DynamicResources, NAME};
use crate::framework::StepError;
use coracle_client::ObjectKey;
use coracle_client::clock::Instant;
use std::time::Duration;

/// Claims tell when they change; this finds that their time is over.
const LOOK_EVERY: Duration = Duration::from_secs(5);

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
                return refused("device binding timeout".to_owned());
            }
            let soon = (Instant::now() + LOOK_EVERY).min(end);
            drop(tokio::time::timeout_at(soon, notified).await);
        }
    }

    fn look(&self, claims: &[ObjectKey]) -> Result<bool, StepError> {
        let devices = self.writer.devices.lock();
        let mut is_ready = true;
        for key in claims {
            let Some(claim) = devices.claim(key) else {
                return refused(format!("could not find ResourceClaim \"{key}\""));
            };
            match readiness::of(claim) {
                Readiness::Ready => {}
                Readiness::Failed(why) => return refused(why),
                Readiness::Waiting => {
                    is_ready = false;
                    let now = self.writer.clock.now();
                    if readiness::is_over(claim, self.args.binding_timeout, now) {
                        let why = format!("device binding timeout: claim={}", key.name);
                        return refused(why);
                    }
                }
            }
        }
        Ok(is_ready)
    }
}

fn refused<T>(why: String) -> Result<T, StepError> {
    Err(StepError::Refused { plugin: NAME, why })
}
