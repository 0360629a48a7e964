//! What agents before this one left: sandboxes on networks of plugins, and plugins of theirs that may
//! still run, as an agent that is killed takes nothing with it. Pure.

use crate::runtime::SandboxId;
use std::collections::BTreeSet;

/// One whose list cannot be read knows no sandbox of a former agent, and is told it later.
#[derive(Debug, Default)]
pub struct Former {
    /// None while it cannot be listed.
    listed: Option<BTreeSet<SandboxId>>,
    /// Of these plugins may still run.
    unmet: BTreeSet<SandboxId>,
    /// What this agent did something with before there was a list.
    own: BTreeSet<SandboxId>,
    /// The sandboxes that there were when this agent began, once they are told.
    alive: Option<BTreeSet<SandboxId>>,
}

impl Former {
    pub fn is_listed(&self) -> bool {
        self.listed.is_some()
    }

    /// What there is on disk, of this agent's too.
    pub fn list(&mut self, found: BTreeSet<SandboxId>) {
        let of_former: BTreeSet<_> = found.difference(&self.own).cloned().collect();
        self.unmet.clone_from(&of_former);
        self.listed = Some(of_former);
        self.own.clear();
    }

    /// Whether a plugin may run for it that this agent did not start.
    pub fn may_run(&self, sandbox: &SandboxId) -> bool {
        match self.listed {
            Some(_) => self.unmet.contains(sandbox),
            None => !self.own.contains(sandbox),
        }
    }

    /// None does any more, and what comes is this agent's own.
    pub fn met(&mut self, sandbox: &SandboxId) {
        self.unmet.remove(sandbox);
        if !self.is_listed() {
            self.own.insert(sandbox.clone());
        }
    }

    /// Those that there were when this agent began.
    pub fn alive(&mut self, alive: BTreeSet<SandboxId>) {
        self.alive = Some(alive);
    }

    /// The sandboxes that have gone without being taken off their networks, once.
    pub fn lost(&mut self) -> BTreeSet<SandboxId> {
        let Some(listed) = &mut self.listed else {
            return BTreeSet::new();
        };
        let Some(alive) = self.alive.take() else {
            return BTreeSet::new();
        };
        let listed = std::mem::take(listed);
        listed.difference(&alive).cloned().collect()
    }
}

#[cfg(test)]
mod tests;
