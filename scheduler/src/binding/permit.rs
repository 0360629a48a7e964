//! Permit: whether the pod may be bound, and whether it waits for that.

use super::lap::Lap;
use super::{Place, not_waited};
use crate::framework::{Permission, Point, Profile, SharedPlugin, StepError};
use crate::laps::{Stage, Status};
use crate::pod_info::PodInfo;
use coracle_client::clock::Instant;
use std::time::Duration;

/// Upstream's bound, 15m0s as it is told, on how long Permit may keep a pod waiting.
const PERMIT_MAX: Duration = Duration::from_secs(15 * 60);

pub async fn all(
    profile: &Profile,
    pod: &PodInfo,
    node: &str,
    place: &mut Place,
) -> Result<(), StepError> {
    let all = Lap::begin(Stage::Permit);
    let mut has_waited = false;
    for (_, plugin) in profile.at(Point::Permit) {
        let began = Instant::now();
        let (waited, permitted) = permit(plugin, pod, node, place).await;
        if waited {
            let status = match permitted {
                Ok(()) => Status::Success,
                Err(StepError::Refused { .. }) => Status::Unschedulable,
                Err(StepError::Failed { .. }) => Status::Error,
            };
            place.counted(|counting| counting.permitted(status, began, Instant::now()));
            has_waited = true;
        } else if permitted.is_err() {
            place.lap(None, all, &permitted);
        }
        permitted?;
    }
    // How long others took to permit it is not the time of the point.
    if !has_waited {
        place.lap(None, all, &Ok(()));
    }
    Ok(())
}

/// Also whether the pod had to wait.
async fn permit(
    plugin: &SharedPlugin,
    pod: &PodInfo,
    node: &str,
    place: &mut Place,
) -> (bool, Result<(), StepError>) {
    let refused = |why: String| StepError::Refused {
        plugin: plugin.name(),
        why,
    };
    let end = Instant::now() + PERMIT_MAX;
    let mut has_waited = false;
    loop {
        let own = Lap::begin(Stage::Permit);
        let answer = plugin.permit(pod, node);
        let pause = match answer {
            Permission::Allow => {
                place.lap(Some(plugin), own, &Ok(()));
                return (has_waited, Ok(()));
            }
            Permission::Deny(why) => {
                let denied = Err(refused(why));
                place.lap(Some(plugin), own, &denied);
                return (has_waited, denied);
            }
            Permission::Wait(pause) => pause,
        };
        if Instant::now() + pause > end {
            let name = plugin.name();
            let late = refused(format!(
                "rejected due to timeout after waiting 15m0s at plugin {name}"
            ));
            return (has_waited, Err(late));
        }
        has_waited = true;
        let waited = place.while_waiting(tokio::time::sleep(pause)).await;
        if let Err(why) = waited {
            return (has_waited, Err(not_waited(plugin, why)));
        }
    }
}
