//! What a group uses, and the bound of the group that all pods are in.

use super::super::contract::{Resources, Stall, Stalls, Usage, Waited};
use super::{Hierarchies, below, hand_down, keyed, limits, number};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Version 1 says this, or a little less, for no limit.
const UNLIMITED_V1: u64 = 1 << 62;

impl Hierarchies {
    pub fn usage(&self, group: &str) -> Option<Usage> {
        let memory = self.directory("memory", group)?;
        let stat = fs::read_to_string(memory.join("memory.stat")).ok()?;
        let stat = |key: &str| value(&stat, key);
        let processes = self.directory("pids", group);
        let processes = processes.and_then(|pids| number(&pids.join("pids.current")));
        let unified = self.is_unified();
        let (total, inactive, rss, faults, cpu_ns) = if unified {
            (
                number(&memory.join("memory.current"))?,
                stat("inactive_file")?,
                stat("anon"),
                [stat("pgfault"), stat("pgmajfault")],
                keyed(&memory.join("cpu.stat"), "usage_usec")? * 1000,
            )
        } else {
            (
                number(&memory.join("memory.usage_in_bytes"))?,
                stat("total_inactive_file")?,
                stat("total_rss"),
                [stat("total_pgfault"), stat("total_pgmajfault")],
                number(&self.directory("cpuacct", group)?.join("cpuacct.usage"))?,
            )
        };
        Some(Usage {
            cpu_ns,
            memory_usage_bytes: total,
            memory_working_set_bytes: total.saturating_sub(inactive),
            memory_rss_bytes: rss.unwrap_or(0),
            page_faults: faults[0].unwrap_or(0),
            major_page_faults: faults[1].unwrap_or(0),
            process_count: processes.unwrap_or(0),
            swap_bytes: match unified {
                true => number(&memory.join("memory.swap.current")),
                false => stat("total_swap"),
            },
            stalls: self.pressure_directory(group).and_then(|at| stalls(&at)),
        })
    }

    /// The kernel measures stalls in version 2 alone, also beside version 1.
    fn pressure_directory(&self, group: &str) -> Option<PathBuf> {
        self.v2.as_deref().map(|mount| below(mount, group))
    }

    /// None without a limit.
    pub fn memory_limit_bytes(&self, group: &str) -> Option<u64> {
        let file = match self.is_unified() {
            true => "memory.max",
            false => "memory.limit_in_bytes",
        };
        let limit = number(&self.directory("memory", group)?.join(file))?;
        (limit < UNLIMITED_V1).then_some(limit)
    }

    /// Holds the group that all pods are in to this, and names the first limit that the kernel
    /// refuses; what the host has no controller for is left out.
    pub fn limit_all(&self, group: &str, resources: &Resources) -> io::Result<()> {
        for (controller, file, value) in limits::files(resources, self.is_unified()) {
            let Some(directory) = self.directory(controller, group) else {
                continue;
            };
            fs::create_dir_all(&directory)?;
            if self.is_unified() {
                hand_down(&directory)?;
            }
            let path = directory.join(file);
            if path.exists() {
                fs::write(&path, &value).map_err(|error| named(&path, &value, &error))?;
            }
        }
        Ok(())
    }
}

fn named(path: &Path, value: &str, error: &io::Error) -> io::Error {
    let text = format!("cannot write {value:?} to {}: {error}", path.display());
    io::Error::new(error.kind(), text)
}

fn value(stat: &str, key: &str) -> Option<u64> {
    let line = stat
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

/// Of a group, or of the machine: `/proc/pressure` has the same files without the ending.
pub fn stalls(directory: &Path) -> Option<Stalls> {
    let read = |name: &str| {
        let text = fs::read_to_string(directory.join(format!("{name}.pressure")));
        let text = text.or_else(|_| fs::read_to_string(directory.join(name)));
        stall(&text.ok()?)
    };
    Some(Stalls {
        cpu: read("cpu")?,
        memory: read("memory")?,
        io: read("io")?,
    })
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, and the same with `full`.
fn stall(text: &str) -> Option<Stall> {
    let waited = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let number = |key: &str| {
            line.split_whitespace()
                .find_map(|word| word.strip_prefix(key))
        };
        Some(Waited {
            total_us: number("total=")?.parse().ok()?,
            percent: [
                number("avg10=")?.parse().ok()?,
                number("avg60=")?.parse().ok()?,
                number("avg300=")?.parse().ok()?,
            ],
        })
    };
    Some(Stall {
        some: waited("some ")?,
        // Older kernels have none of processors.
        full: waited("full ").unwrap_or_default(),
    })
}
