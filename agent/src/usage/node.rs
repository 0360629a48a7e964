//! What the whole machine uses.

use std::fs;
use std::path::Path;

/// Where the machine's own group is on hosts with version 1.
const ROOT_MEMORY_V1: &str = "/sys/fs/cgroup/memory";

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Memory {
    pub total_bytes: i64,
    /// What is in use and cannot be had back by dropping the cache of files not used lately: the
    /// working set as upstream counts it.
    pub working_set_bytes: i64,
}

impl Memory {
    pub fn available_bytes(&self) -> i64 {
        (self.total_bytes - self.working_set_bytes).max(0)
    }
}

pub fn memory() -> Option<Memory> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    memory_of(&text, root_usage(Path::new(ROOT_MEMORY_V1)))
}

/// `root` is what the root group counts, in use and inactive; version 2 counts nothing there, so
/// that the machine's own numbers stand for it, as they do for upstream.
fn memory_of(meminfo: &str, root: Option<(i64, i64)>) -> Option<Memory> {
    let total = field(meminfo, "MemTotal")?;
    let (used, inactive) = match root {
        Some(root) => root,
        None => (
            total - field(meminfo, "MemFree")?,
            field(meminfo, "Inactive(file)")?,
        ),
    };
    Some(Memory {
        total_bytes: total,
        working_set_bytes: (used - inactive).clamp(0, total),
    })
}

fn root_usage(directory: &Path) -> Option<(i64, i64)> {
    let used = fs::read_to_string(directory.join("memory.usage_in_bytes")).ok()?;
    let stat = fs::read_to_string(directory.join("memory.stat")).ok()?;
    let inactive = stat
        .lines()
        .find_map(|line| line.strip_prefix("total_inactive_file "))?;
    Some((used.trim().parse().ok()?, inactive.trim().parse().ok()?))
}

/// A line of /proc/meminfo, in bytes.
pub fn field(meminfo: &str, name: &str) -> Option<i64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: i64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

#[derive(Clone, Copy, Debug)]
pub struct Processes {
    pub count: i64,
    pub max: i64,
}

/// Threads count as processes do: each has an id.
pub fn processes() -> Option<Processes> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let (_, total) = text.split_whitespace().nth(3)?.split_once('/')?;
    Some(Processes {
        count: total.parse().ok()?,
        max: process_ids_max()?,
    })
}

/// The lower of the two bounds that the kernel has.
pub fn process_ids_max() -> Option<i64> {
    let read = |name: &str| {
        let text = fs::read_to_string(Path::new("/proc/sys/kernel").join(name)).ok()?;
        text.trim().parse::<i64>().ok()
    };
    let bounds = [read("pid_max"), read("threads-max")];
    bounds.into_iter().flatten().min()
}

#[cfg(test)]
mod tests;
