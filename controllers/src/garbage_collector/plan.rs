//! Decides what becomes of one object, given the graph's view and the server's. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::graph::{FOREGROUND, Graph, ORPHAN, Uid};

/// What an owner reference is worth, by the server's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The owner exists and stays.
    Solid,
    /// There is no such owner.
    Dangling,
    /// The owner is deleted and waits for its dependents.
    Waiting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// What to do with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Keep,
    /// It has an owner that stays: the other references go.
    RemoveOwners(Vec<String>),
    Delete {
        propagation: Propagation,
        /// Its references must not block its owners: they may block each other in a circle.
        unblock: bool,
    },
}

/// An object that waits for its dependents: who is to be looked at, or nobody is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    Over,
    For(Vec<Uid>),
}

/// Decides about an object that is not being deleted, or not yet waiting.
pub(super) fn plan(
    graph: &Graph,
    uid: &Uid,
    latest: &ObjectMeta,
    owners: &[(OwnerReference, Standing)],
) -> Action {
    if owners.is_empty() {
        return Action::Keep;
    }
    let is = |wanted| owners.iter().any(|(_, standing)| *standing == wanted);
    if is(Standing::Solid) {
        let others = owners
            .iter()
            .filter(|(_, standing)| *standing != Standing::Solid);
        let others: Vec<_> = others.map(|(owner, _)| owner.uid.clone()).collect();
        return if others.is_empty() {
            Action::Keep
        } else {
            Action::RemoveOwners(others)
        };
    }
    let dependents = graph.dependents(uid);
    if is(Standing::Waiting) && !dependents.is_empty() {
        return Action::Delete {
            propagation: Propagation::Foreground,
            unblock: dependents.iter().any(|one| one.deleting_dependents),
        };
    }
    Action::Delete {
        propagation: propagation(latest),
        unblock: false,
    }
}

/// Finalizers that are there already are honored.
fn propagation(latest: &ObjectMeta) -> Propagation {
    let has = |wanted: &str| {
        let finalizers = latest.finalizers.as_deref().unwrap_or_default();
        finalizers.iter().any(|one| one == wanted)
    };
    if has(ORPHAN) {
        Propagation::Orphan
    } else if has(FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    }
}

/// Decides about an object that is deleted and waits for its dependents.
pub(super) fn wait(graph: &Graph, uid: &Uid) -> Wait {
    let blocking = graph.blocking(uid);
    if blocking.is_empty() {
        return Wait::Over;
    }
    let next = blocking.iter().filter(|one| !one.deleting_dependents);
    Wait::For(next.map(|one| one.identity.uid.clone()).collect())
}

#[cfg(test)]
mod tests;
