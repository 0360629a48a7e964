//! Who is evicted first. Pure; the order is upstream's.
//!
//! For memory and disk: first who uses more than it requested, then by priority, then by how much
//! more. Process ids are not requested: by priority, then by how many. Nothing is known of a pod:
//! it goes first.

use super::signal::{Resource, Signal};
use crate::pods::asked;
use crate::usage::DiskUse;
use crate::usage::pods::{PodDisk, PodUsage};
use coracle_api::quantity::{Format, Quantity};
use k8s_openapi::api::core::v1::Pod;
use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Candidate {
    pub pod: Arc<Pod>,
    /// None: it could not be read.
    pub usage: Option<PodUsage>,
}

/// Which of the node's file systems are one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Layout {
    /// Images have a file system of their own.
    pub has_image_fs: bool,
    /// Containers' writable layers are on the node's, though images are not.
    pub is_split: bool,
}

/// What of a pod is on the file system that runs short.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Parts {
    roots: bool,
    /// Logs and volumes.
    rest: bool,
}

impl Layout {
    fn parts(self, signal: Signal) -> Parts {
        let is_images = matches!(signal, Signal::ImageFsAvailable | Signal::ImageFsInodesFree);
        match (self.has_image_fs, is_images) {
            (false, _) => Parts {
                roots: true,
                rest: true,
            },
            (true, true) => Parts {
                roots: !self.is_split,
                rest: false,
            },
            (true, false) => Parts {
                roots: self.is_split,
                rest: true,
            },
        }
    }

    /// Whether the removal of dead containers, and that of images, make room there.
    pub fn reclaims(self, signal: Signal) -> (bool, bool) {
        let parts = self.parts(signal);
        let is_images = matches!(signal, Signal::ImageFsAvailable | Signal::ImageFsInodesFree);
        match signal.resource() {
            Resource::Memory | Resource::Pids => (false, false),
            _ => (parts.roots, !self.has_image_fs || is_images),
        }
    }
}

/// The first to be evicted comes first.
pub fn rank(candidates: &mut [Candidate], signal: Signal, layout: Layout) {
    match signal.resource() {
        Resource::Memory => candidates.sort_by_cached_key(|one| {
            let used = one.usage.as_ref().map(memory);
            over_request(one, used, "memory", "memory")
        }),
        Resource::Pids => candidates.sort_by_cached_key(|one| {
            let count = one.usage.as_ref().map(|usage| {
                let usage = usage.usage.unwrap_or_default();
                Reverse(usage.process_count)
            });
            (asked::priority(&one.pod), count)
        }),
        Resource::EphemeralStorage => candidates.sort_by_cached_key(|one| {
            let used = disk(one, layout.parts(signal));
            let used = used.map(|used| bytes(used.bytes));
            over_request(one, used, "ephemeral-storage", "ephemeral-storage")
        }),
        // Compared as upstream does: above the request of inodes, which nobody makes, and by how
        // far above that of storage.
        Resource::Inodes => candidates.sort_by_cached_key(|one| {
            let used = disk(one, layout.parts(signal));
            let used = used.map(|used| bytes(used.inodes));
            over_request(one, used, "inodes", "ephemeral-storage")
        }),
    }
}

/// Sorts as the candidates are evicted.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Key {
    is_known: bool,
    is_within: bool,
    priority: i32,
    over: Reverse<Over>,
}

#[derive(Debug, Eq, PartialEq)]
struct Over(Quantity);

impl Ord for Over {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Over {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn over_request(one: &Candidate, used: Option<Quantity>, bound: &str, measure: &str) -> Key {
    let requests = asked::requests(&one.pod);
    let request = |name: &str| requests.get(name).unwrap_or(Quantity::ZERO);
    let known = used.unwrap_or(Quantity::ZERO);
    Key {
        is_known: used.is_some(),
        is_within: known <= request(bound),
        priority: asked::priority(&one.pod),
        over: Reverse(Over(known.minus(request(measure)))),
    }
}

fn memory(usage: &PodUsage) -> Quantity {
    bytes(usage.usage.unwrap_or_default().memory_working_set_bytes)
}

fn disk(one: &Candidate, parts: Parts) -> Option<DiskUse> {
    let disk = one.usage.as_ref()?.disk.as_deref()?;
    Some(sum(disk, parts))
}

fn sum(disk: &PodDisk, parts: Parts) -> DiskUse {
    let mut used = DiskUse::default();
    for container in &disk.containers {
        if parts.roots {
            used = used.plus(container.root);
        }
        if parts.rest {
            used = used.plus(container.logs);
        }
    }
    let volumes = disk.volumes.iter().filter(|_| parts.rest);
    volumes.fold(used, |used, (_, volume)| used.plus(*volume))
}

pub fn bytes(count: u64) -> Quantity {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    Quantity::from_units(count, Format::BinarySi)
}

#[cfg(test)]
mod tests;
