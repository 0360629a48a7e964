//! The numbers in a Deployment's spec, resolved. Pure.
//!
//! The server has defaulted and validated the spec; what is missing all the same reads as
//! upstream's default.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::scaled::{Rounding, scaled};

fn spec(deployment: &Deployment) -> Option<&DeploymentSpec> {
    deployment.spec.as_ref()
}

pub(super) fn replicas(deployment: &Deployment) -> i32 {
    spec(deployment).and_then(|spec| spec.replicas).unwrap_or(1)
}

pub(super) fn is_paused(deployment: &Deployment) -> bool {
    spec(deployment)
        .and_then(|spec| spec.paused)
        .unwrap_or(false)
}

pub(super) fn is_recreate(deployment: &Deployment) -> bool {
    let strategy = spec(deployment).and_then(|spec| spec.strategy.as_ref());
    strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate")
}

pub(super) fn min_ready_seconds(deployment: &Deployment) -> Option<i32> {
    spec(deployment).and_then(|spec| spec.min_ready_seconds)
}

/// `None` when progress is not to be judged, which the largest number asks for.
pub(super) fn progress_deadline(deployment: &Deployment) -> Option<Duration> {
    let seconds = spec(deployment)?.progress_deadline_seconds?;
    let seconds = u64::try_from(seconds).ok()?;
    (seconds != i32::MAX as u64).then(|| Duration::from_secs(seconds))
}

/// `None` when every revision is to be kept, which the largest number asks for.
pub(super) fn history_limit(deployment: &Deployment) -> Option<usize> {
    let limit = spec(deployment)?.revision_history_limit?;
    (limit != i32::MAX).then(|| usize::try_from(limit).unwrap_or(0))
}

/// How many pods there may be above `replicas`.
pub(super) fn max_surge(deployment: &Deployment) -> i32 {
    if is_recreate(deployment) {
        0
    } else {
        fence_posts(deployment).0
    }
}

/// How many of `replicas` may be missing.
pub(super) fn max_unavailable(deployment: &Deployment) -> i32 {
    let replicas = replicas(deployment);
    if is_recreate(deployment) || replicas == 0 {
        return 0;
    }
    fence_posts(deployment).1.min(replicas)
}

/// Surge is rounded up and unavailability down. If both come to nothing, one may be missing:
/// a surge might be held up by a quota, and the rollout must be able to move.
fn fence_posts(deployment: &Deployment) -> (i32, i32) {
    let rolling = spec(deployment)
        .and_then(|spec| spec.strategy.as_ref())
        .and_then(|strategy| strategy.rolling_update.as_ref());
    let quarter = IntOrString::String("25%".to_owned());
    let (surge, unavailable) = match rolling {
        Some(rolling) => (rolling.max_surge.as_ref(), rolling.max_unavailable.as_ref()),
        None => (Some(&quarter), Some(&quarter)),
    };
    let replicas = replicas(deployment);
    let surge = surge.map_or(0, |value| scaled(value, replicas, Rounding::Up));
    let unavailable = unavailable.map_or(0, |value| scaled(value, replicas, Rounding::Down));
    if surge == 0 && unavailable == 0 {
        (0, 1)
    } else {
        (surge, unavailable)
    }
}
