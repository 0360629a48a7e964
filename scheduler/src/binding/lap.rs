//! How long each step of a binding takes.

use super::Place;
use crate::framework::{SharedPlugin, StepError};
use crate::laps::{Stage, Status};
use coracle_client::clock::Instant;

/// What began when.
#[derive(Clone, Copy, Debug)]
pub struct Lap(pub Stage, pub Instant);

impl Lap {
    pub fn begin(stage: Stage) -> Self {
        Self(stage, Instant::now())
    }
}

impl Place {
    /// A point is done since then, or a plugin of it.
    pub(super) fn lap<T>(
        &self,
        plugin: Option<&SharedPlugin>,
        at: Lap,
        done: &Result<T, StepError>,
    ) {
        let Lap(stage, since) = at;
        let status = match done {
            Ok(_) => Status::Success,
            Err(StepError::Refused { .. }) => Status::Unschedulable,
            Err(StepError::Failed { .. }) => Status::Error,
        };
        self.counted(|counting| match plugin {
            Some(plugin) => {
                counting.plugin(plugin.name(), (stage, status), since, Instant::now());
            }
            None => counting.point(stage, status, since, Instant::now()),
        });
    }
}
