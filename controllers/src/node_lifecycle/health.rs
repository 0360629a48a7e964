//! When each node was last heard of, by this process's own clock. Pure.
//!
//! A sign of life is any change of the Lease's `renewTime` or of Ready's `lastHeartbeatTime`; what
//! these say is never compared with a clock here, so a node's clock may be wrong. Silence before
//! this process first saw the node does not count.

use std::time::Duration;

use coracle_client::clock::Instant;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;

use super::node::{self, Readiness};

/// A look that comes this much later than it was due means that this process did not run, as
/// when its machine was suspended. Longer than a rush of work lasts, and than nodes wait between
/// two signs of life.
const LATE: Duration = Duration::from_secs(10);

/// How long a node may be silent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Graces {
    /// Of a node that has reported its state before.
    pub(super) monitor: Duration,
    /// Of a node that never has.
    pub(super) startup: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// Not long enough to say anything; so much is left.
    Within(Duration),
    TooLong,
}

#[derive(Debug)]
pub(super) struct Health {
    pub(super) uid: String,
    seen_at: Instant,
    heartbeat: Option<Timestamp>,
    renewed: Option<Timestamp>,
    reports: bool,
    /// When the next look was due.
    look_at: Option<Instant>,
    /// Its pods have been marked since it was lost.
    pub(super) pods_marked: bool,
}

impl Health {
    pub(super) fn new(node: &Node, now: Instant) -> Self {
        Self {
            uid: node.metadata.uid.clone().unwrap_or_default(),
            seen_at: now,
            heartbeat: node::heartbeat(node),
            renewed: None,
            reports: node::readiness(node) != Readiness::Unreported,
            look_at: None,
            pods_marked: false,
        }
    }

    pub(super) fn saw_lease(&mut self, renewed: Option<Timestamp>, now: Instant) {
        if renewed.is_some() && self.renewed != renewed {
            self.renewed = renewed;
            self.seen_at = now;
        }
    }

    pub(super) fn saw_status(&mut self, node: &Node, now: Instant) {
        let reports = node::readiness(node) != Readiness::Unreported;
        let heartbeat = node::heartbeat(node);
        if reports != self.reports || heartbeat != self.heartbeat {
            self.reports = reports;
            self.heartbeat = heartbeat;
            self.seen_at = now;
        }
    }

    /// Forgives the silence so far.
    pub(super) fn reset(&mut self, now: Instant) {
        self.seen_at = now;
    }

    pub(super) fn silence(&mut self, graces: Graces, now: Instant) -> Silence {
        let grace = if self.reports {
            graces.monitor
        } else {
            graces.startup
        };
        // What this process slept through was not the node's silence: as after a restart.
        if self.look_at.is_some_and(|due| now > due + LATE) && now >= self.seen_at + grace {
            self.seen_at = now;
        }
        let end = self.seen_at + grace;
        if now >= end {
            self.look_at = None;
            return Silence::TooLong;
        }
        self.look_at = Some(end);
        Silence::Within(end - now)
    }
}

#[cfg(test)]
mod tests;
