//! Which images go. Pure.

use crate::images::ImageInfo;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The rules; numbers and names are upstream's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ImagePolicy {
    /// Percent of the disk in use from which images go; 100 for never.
    pub high_percent: u8,
    /// Down to which percent.
    pub low_percent: u8,
    /// A younger image may be about to be used.
    pub age_min: Duration,
    /// An image that was not used for so long goes however much room there is; zero for never.
    pub unused_max: Duration,
}

impl Default for ImagePolicy {
    fn default() -> Self {
        Self {
            high_percent: 85,
            low_percent: 80,
            age_min: Duration::from_secs(2 * 60),
            unused_max: Duration::ZERO,
        }
    }
}

/// When an image was seen first, and last in use. Time that never goes back, since the start.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Seen {
    first: Duration,
    used: Option<Duration>,
}

/// What is remembered of the images that are there; nothing of those that are not.
#[derive(Clone, Debug, Default)]
pub struct Memory(BTreeMap<String, Seen>);

/// An image that may go.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Idle {
    pub id: String,
    pub size_bytes: u64,
    age: Duration,
    unused: Duration,
}

impl Memory {
    /// Notes which images are there and in use, and names those that may go, the first first.
    pub fn look(
        &mut self,
        images: &[ImageInfo],
        in_use: &BTreeSet<String>,
        now: Duration,
    ) -> Vec<Idle> {
        let known = std::mem::take(&mut self.0);
        let mut idle = Vec::new();
        for image in images {
            let mut seen = known.get(&image.id).copied().unwrap_or(Seen {
                first: now,
                used: None,
            });
            let is_used = in_use.contains(&image.id);
            if is_used {
                seen.used = Some(now);
            }
            self.0.insert(image.id.clone(), seen);
            if is_used || image.imported || image.pinned {
                continue;
            }
            // What was never in use is taken for older than all that was, as upstream does.
            idle.push((seen.used, seen.first, image));
        }
        idle.sort_by_key(|(used, first, image)| (*used, *first, image.id.clone()));
        let to_idle = |(used, first, image): (Option<Duration>, Duration, &ImageInfo)| Idle {
            id: image.id.clone(),
            size_bytes: image.size_bytes,
            age: now.saturating_sub(first),
            unused: now.saturating_sub(used.unwrap_or(first)),
        };
        idle.into_iter().map(to_idle).collect()
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Disk {
    pub total_bytes: u64,
    pub free_bytes: u64,
}

impl Disk {
    pub fn used_percent(self) -> u64 {
        let free = self.free_bytes.min(self.total_bytes);
        100 - free * 100 / self.total_bytes.max(1)
    }
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Plan {
    pub remove: Vec<String>,
    /// The disk stays over its high mark: what this removes is not what fills it.
    pub is_lost: bool,
}

/// What goes because it is old, and what goes because the disk is full.
pub fn plan(policy: &ImagePolicy, idle: &[Idle], disk: Disk) -> Plan {
    let is_old = |image: &&Idle| !policy.unused_max.is_zero() && image.unused > policy.unused_max;
    let (old, rest): (Vec<_>, Vec<_>) = idle.iter().partition(is_old);
    let mut plan = Plan {
        remove: old.iter().map(|image| image.id.clone()).collect(),
        is_lost: false,
    };
    let freed: u64 = old.iter().map(|image| image.size_bytes).sum();
    let disk = Disk {
        free_bytes: disk.free_bytes.saturating_add(freed),
        ..disk
    };
    if policy.high_percent >= 100 || disk.used_percent() < u64::from(policy.high_percent) {
        return plan;
    }
    let young_enough: Vec<_> = rest
        .into_iter()
        .filter(|image| image.age >= policy.age_min)
        .collect();
    let all: u64 = young_enough.iter().map(|image| image.size_bytes).sum();
    let after_all = Disk {
        free_bytes: disk.free_bytes.saturating_add(all),
        ..disk
    };
    if after_all.used_percent() >= u64::from(policy.high_percent) {
        plan.is_lost = true;
        return plan;
    }
    let low = 100 - u64::from(policy.low_percent.min(100));
    let wanted_free = u128::from(disk.total_bytes) * u128::from(low) / 100;
    let mut free = disk.free_bytes;
    for image in young_enough {
        if u128::from(free) >= wanted_free {
            break;
        }
        free = free.saturating_add(image.size_bytes);
        plan.remove.push(image.id.clone());
    }
    plan
}

/// All that may go, for a node that is about to evict pods.
pub fn all(policy: &ImagePolicy, idle: &[Idle]) -> Vec<String> {
    let old_enough = idle.iter().filter(|image| image.age >= policy.age_min);
    old_enough.map(|image| image.id.clone()).collect()
}

/// What the event says of a disk that cannot be freed, in upstream's words.
pub fn lost_message(disk: Disk, freed_bytes: u64) -> String {
    format!(
        "Insufficient free disk space on the node's image filesystem ({}% of {} used). Failed to \
         free sufficient space by deleting unused images (freed {freed_bytes} bytes). Investigate \
         disk usage, as it could be used by active images, logs, volumes, or other data.",
        disk.used_percent(),
        size(disk.total_bytes)
    )
}

fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit < units.len() - 1 {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", units[unit])
}

#[cfg(test)]
mod tests;
