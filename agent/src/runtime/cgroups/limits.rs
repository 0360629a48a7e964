//! Limits as files of a group, on both versions.

use super::super::contract::Resources;
use super::{Hierarchies, SWAP_V1};
use std::fs;
use std::io;

/// Version 1 says so when there is no limit: as many pages as there can be.
const UNLIMITED_BYTES: i64 = i64::MAX - (1 << 20);
/// The kernel counts memory in pages.
const PAGE_BYTES: i64 = 4096;

impl Hierarchies {
    /// Changes limits of a group in use; what is zero stays as it is. Tells what the kernel
    /// refuses, unlike `make_pod`.
    pub fn change(&self, group: &str, resources: &Resources) -> io::Result<()> {
        let mut files = files(resources, self.is_unified());
        let bytes = resources.memory_limit_bytes;
        if bytes > 0 && !self.is_unified() && self.limits_swap(group) {
            // Memory with swap is never bounded below memory alone.
            let swap = ("memory", SWAP_V1, bytes.to_string());
            let now = self.read(group, resources).memory_limit_bytes;
            let first = usize::from(now == 0 || now > bytes);
            files.insert(first, swap);
        }
        for (controller, file, value) in files {
            if let Some(directory) = self.directory(controller, group) {
                let path = directory.join(file);
                if path.exists() {
                    fs::write(&path, &value)?;
                }
            }
        }
        Ok(())
    }

    /// The limits that a group has. The kernel keeps some of them rounded: where it has just what
    /// `asked` comes to, that is the answer.
    pub fn read(&self, group: &str, asked: &Resources) -> Resources {
        let unified = self.is_unified();
        let text = |controller: &str, file: &str| -> Option<String> {
            let path = self.directory(controller, group)?.join(file);
            Some(fs::read_to_string(path).ok()?.trim().to_owned())
        };
        let mut found = Resources::default();
        let file = if unified {
            "memory.max"
        } else {
            "memory.limit_in_bytes"
        };
        let bytes = text("memory", file).and_then(|text| text.parse::<i64>().ok());
        if let Some(bytes) = bytes.filter(|bytes| *bytes < UNLIMITED_BYTES) {
            let is_asked = asked.memory_limit_bytes / PAGE_BYTES == bytes / PAGE_BYTES;
            found.memory_limit_bytes = if is_asked {
                asked.memory_limit_bytes
            } else {
                bytes
            };
        }
        if unified {
            let kept = text("cpu", "cpu.weight").and_then(|text| text.parse().ok());
            found.cpu_shares = match kept {
                Some(kept) if weight(asked.cpu_shares) == kept => asked.cpu_shares,
                Some(kept) => shares(kept),
                None => 0,
            };
            let max = text("cpu", "cpu.max").unwrap_or_default();
            if let Some((quota, period)) = max.split_once(' ') {
                found.cpu_quota_us = quota.parse().unwrap_or(0);
                found.cpu_period_us = period.parse().unwrap_or(0);
            }
        } else {
            let number = |file: &str| text("cpu", file)?.parse::<i64>().ok();
            let unsigned = |file: &str| number(file).and_then(|number| u64::try_from(number).ok());
            found.cpu_shares = unsigned("cpu.shares").unwrap_or(0);
            found.cpu_quota_us = number("cpu.cfs_quota_us").unwrap_or(0).max(0);
            found.cpu_period_us = unsigned("cpu.cfs_period_us").unwrap_or(0);
        }
        found
    }
}

/// Controller, file and value of what is asked for.
pub fn files(resources: &Resources, unified: bool) -> Vec<(&'static str, &'static str, String)> {
    let mut files = Vec::new();
    if resources.memory_limit_bytes > 0 {
        let file = if unified {
            "memory.max"
        } else {
            "memory.limit_in_bytes"
        };
        files.push(("memory", file, resources.memory_limit_bytes.to_string()));
    }
    if resources.cpu_shares > 0 {
        match unified {
            true => files.push((
                "cpu",
                "cpu.weight",
                weight(resources.cpu_shares).to_string(),
            )),
            false => files.push(("cpu", "cpu.shares", resources.cpu_shares.max(2).to_string())),
        }
    }
    if resources.cpu_quota_us > 0 {
        let period = if resources.cpu_period_us == 0 {
            100_000
        } else {
            resources.cpu_period_us
        };
        match unified {
            true => files.push((
                "cpu",
                "cpu.max",
                format!("{} {period}", resources.cpu_quota_us),
            )),
            false => {
                files.push(("cpu", "cpu.cfs_period_us", period.to_string()));
                files.push((
                    "cpu",
                    "cpu.cfs_quota_us",
                    resources.cpu_quota_us.to_string(),
                ));
            }
        }
    }
    if resources.pids_limit > 0 {
        files.push(("pids", "pids.max", resources.pids_limit.to_string()));
    }
    files
}

/// From weight to the least shares that have it.
fn shares(weight: u64) -> u64 {
    2 + ((weight.clamp(1, 10_000) - 1) * 262_142).div_ceil(9999)
}

/// From shares (2 to 262144) to weight (1 to 10000), as the kubelet converts.
pub fn weight(shares: u64) -> u64 {
    1 + ((shares.clamp(2, 262_144) - 2) * 9999) / 262_142
}
