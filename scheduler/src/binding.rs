//! Off the cycle: reserve, permit, pre-bind, bind, post-bind; or undo all of it.
//!
//! The pod is assumed on its node before this begins. Whatever fails, reservations are undone in
//! reverse order and the pod is taken off the node again.

use crate::framework::{Permission, Profile, SharedPlugin, StepError};
use crate::pod_info::PodInfo;
use std::time::Duration;

/// Upstream's bound on how long Permit may keep a pod waiting.
const PERMIT_MAX: Duration = Duration::from_secs(15 * 60);

/// Runs all steps after the cycle for a pod on a node.
pub async fn bind(profile: &Profile, pod: &PodInfo, node: &str) -> Result<(), StepError> {
    let result = steps(profile, pod, node).await;
    if result.is_err() {
        for plugin in profile.plugins().rev() {
            plugin.unreserve(pod, node);
        }
    }
    result
}

async fn steps(profile: &Profile, pod: &PodInfo, node: &str) -> Result<(), StepError> {
    for plugin in profile.plugins() {
        plugin.reserve(pod, node)?;
    }
    for plugin in profile.plugins() {
        permit(plugin, pod, node).await?;
    }
    for plugin in profile.plugins() {
        plugin.pre_bind(pod, node).await?;
    }
    let mut bound = None;
    for plugin in profile.plugins() {
        bound = plugin.bind(pod, node).await;
        if bound.is_some() {
            break;
        }
    }
    bound.unwrap_or(Err(StepError::Refused {
        plugin: "Bind",
        why: "no plugin binds the pod".to_owned(),
    }))?;
    for plugin in profile.plugins() {
        plugin.post_bind(pod, node);
    }
    Ok(())
}

async fn permit(plugin: &SharedPlugin, pod: &PodInfo, node: &str) -> Result<(), StepError> {
    let refused = |why: String| StepError::Refused {
        plugin: plugin.name(),
        why,
    };
    let end = tokio::time::Instant::now() + PERMIT_MAX;
    loop {
        match plugin.permit(pod, node) {
            Permission::Allow => return Ok(()),
            Permission::Deny(why) => return Err(refused(why)),
            Permission::Wait(pause) => {
                if tokio::time::Instant::now() + pause > end {
                    return Err(refused("the pod waited too long".to_owned()));
                }
                tokio::time::sleep(pause).await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
