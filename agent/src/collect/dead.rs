//! Which containers, sandboxes and logs go. Pure.
//!
//! Workers remove the old containers of their pods; this is for what no worker knows: sandboxes
//! that were being made when their pod went, former sandboxes of a pod that lives on, logs of pods
//! that are gone. A node that is short of disk also takes the containers of pods that have ended.

use crate::runtime::{
    ContainerId, ContainerState, ContainerStatus, SandboxId, SandboxState, SandboxStatus,
};
use std::collections::{BTreeMap, BTreeSet};

/// Whether a pod that is known has ended; what is not known is gone.
pub type Known = BTreeMap<String, bool>;

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Dead {
    pub containers: Vec<ContainerId>,
    pub sandboxes: Vec<SandboxId>,
}

/// The sandboxes and containers must have been listed before the pods.
pub fn find(
    sandboxes: &[SandboxStatus],
    containers: &[ContainerStatus],
    known: &Known,
    with_ended: bool,
) -> Dead {
    let mut dead = Dead::default();
    let uid_of = |id: &SandboxId| {
        let found = sandboxes.iter().find(|sandbox| sandbox.id == *id);
        found.map(|sandbox| sandbox.config.pod_uid.as_str())
    };
    for container in containers {
        let has_ended = uid_of(&container.sandbox).and_then(|uid| known.get(uid));
        let is_dead = container.state == ContainerState::Exited;
        if with_ended && is_dead && has_ended == Some(&true) {
            dead.containers.push(container.id.clone());
        }
    }
    let stays = |container: &&ContainerStatus| !dead.containers.contains(&container.id);
    let holding: BTreeSet<_> = containers
        .iter()
        .filter(stays)
        .map(|container| &container.sandbox)
        .collect();
    for sandbox in sandboxes {
        let uid = &sandbox.config.pod_uid;
        if !known.contains_key(uid) {
            dead.sandboxes.push(sandbox.id.clone());
            continue;
        }
        let is_former = sandboxes.iter().any(|other| {
            other.config.pod_uid == *uid && other.config.attempt > sandbox.config.attempt
        });
        let is_down = sandbox.state == SandboxState::NotReady;
        if is_former && is_down && !holding.contains(&sandbox.id) {
            dead.sandboxes.push(sandbox.id.clone());
        }
    }
    dead
}

/// Whether a directory of logs, `<namespace>_<name>_<uid>`, is that of a pod that is gone.
pub fn is_of_gone_pod(directory: &str, known: &Known) -> bool {
    directory
        .rsplit_once('_')
        .is_some_and(|(_, uid)| !known.contains_key(uid))
}

#[cfg(test)]
mod tests;
