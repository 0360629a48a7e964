//! Reads the whole machine: what the kubelet has of the root of all control groups.

use super::network::{self, Interface};
use crate::runtime::{Stalls, Usage, stalls};
use crate::usage::node::field;
use jiff::Timestamp;
use std::fs;
use std::path::Path;

/// Linux' unit of processor times in `/proc`, the same on every architecture.
const TICK_NS: u64 = 10_000_000;

#[derive(Clone, Debug)]
pub struct Machine {
    pub at: Timestamp,
    pub booted_at: Timestamp,
    pub usage: Usage,
    pub memory_bytes: u64,
    pub swap_total_bytes: u64,
    pub interfaces: Vec<Interface>,
}

/// `booted_at` is a fact that does not change: the machine's clock may be set meanwhile.
pub fn look(now: Timestamp) -> Machine {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (stat, meminfo, vmstat) = (
        read("/proc/stat"),
        read("/proc/meminfo"),
        read("/proc/vmstat"),
    );
    let bytes = |name: &str| u64::try_from(field(&meminfo, name).unwrap_or(0)).unwrap_or(0);
    let total = bytes("MemTotal");
    let memory = crate::usage::node::memory();
    let working_set = memory.and_then(|memory| u64::try_from(memory.working_set_bytes).ok());
    let swap_total = bytes("SwapTotal");
    Machine {
        at: now,
        booted_at: boot_time(&stat).unwrap_or_default(),
        usage: Usage {
            cpu_ns: cpu_ns(&stat).unwrap_or(0),
            memory_usage_bytes: total.saturating_sub(bytes("MemFree")),
            memory_working_set_bytes: working_set.unwrap_or(0),
            memory_rss_bytes: bytes("AnonPages"),
            page_faults: counter(&vmstat, "pgfault").unwrap_or(0),
            major_page_faults: counter(&vmstat, "pgmajfault").unwrap_or(0),
            process_count: crate::usage::node::processes()
                .and_then(|processes| u64::try_from(processes.count).ok())
                .unwrap_or(0),
            swap_bytes: Some(swap_total.saturating_sub(bytes("SwapFree"))),
            stalls: machine_stalls(),
        },
        memory_bytes: total,
        swap_total_bytes: swap_total,
        interfaces: network::parse(&read("/proc/net/dev")),
    }
}

fn machine_stalls() -> Option<Stalls> {
    stalls(Path::new("/proc/pressure"))
}

/// User, nice, system, interrupts: all that is not idle. What guests had is in user's already.
fn cpu_ns(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    let busy = [0, 1, 2, 5, 6].iter().filter_map(|at| ticks.get(*at));
    Some(busy.sum::<u64>() * TICK_NS)
}

fn boot_time(stat: &str) -> Option<Timestamp> {
    let text = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    Timestamp::from_second(text.trim().parse().ok()?).ok()
}

fn counter(vmstat: &str, name: &str) -> Option<u64> {
    let line = vmstat
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

/// What this process uses, which the kubelet has in a group of its own.
pub fn own_usage() -> Option<Usage> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    own_usage_of(&stat, &status)
}

/// Fields are counted behind the name, which may have spaces in it.
fn own_usage_of(stat: &str, status: &str) -> Option<Usage> {
    let (_, behind) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = behind.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let bytes = |name: &str| field(status, name).and_then(|bytes| u64::try_from(bytes).ok());
    let resident = bytes("VmRSS")?;
    Some(Usage {
        cpu_ns: (number(11)? + number(12)?) * TICK_NS,
        memory_usage_bytes: resident,
        memory_working_set_bytes: resident,
        memory_rss_bytes: bytes("RssAnon")?,
        page_faults: number(7)?,
        major_page_faults: number(9)?,
        process_count: number(17)?,
        swap_bytes: bytes("VmSwap"),
        stalls: None,
    })
}

#[cfg(test)]
mod tests;
