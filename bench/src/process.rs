//! What the kernel counts of processes of this machine: memory, processor time, bytes to disk.

use crate::idle;
use anyhow::Context;
use std::time::Duration;

/// The kernel keeps so much of a command's name.
const NAME_BYTES_MAX: usize = 15;

/// Of one process, or of several together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    pub resident_kb: u64,
    pub processor: Duration,
    /// Sent to a disk by it, not by way of another process.
    pub written_bytes: u64,
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            resident_kb: sum.resident_kb + one.resident_kb,
            processor: sum.processor + one.processor,
            written_bytes: sum.written_bytes + one.written_bytes,
        })
    }
}

/// Of each name all processes that are called so; a number is the id of one.
pub fn ids(names: &[String]) -> anyhow::Result<Vec<Vec<u32>>> {
    let of_name = |name: &String| {
        let ids = called(name)?;
        anyhow::ensure!(!ids.is_empty(), "no process is called {name:?}");
        Ok(ids)
    };
    names.iter().map(of_name).collect()
}

/// All of them together.
pub fn usage(ids: &[u32]) -> anyhow::Result<Usage> {
    ids.iter().map(|id| of(*id)).sum()
}

/// Forgets how much memory it had at most.
pub fn forget_peak(id: u32) -> anyhow::Result<()> {
    /// Of the kernel's interface.
    const PEAK: &str = "5";
    let path = format!("/proc/{id}/clear_refs");
    std::fs::write(&path, PEAK).with_context(|| format!("cannot write {path}"))
}

/// How much memory it had at most, in KB, since that was forgotten.
pub fn peak_kb(id: u32) -> anyhow::Result<u64> {
    let peak = field(&read(id, "status")?, "VmHWM:");
    peak.with_context(|| format!("{id} has no memory: is it a process?"))
}

/// Whether a process of this group lives; what ended and was not asked about yet does not.
pub fn is_any_of(group: i32) -> anyhow::Result<bool> {
    let all = all("stat")?;
    Ok(all.iter().any(|(_, stat)| lives_in(stat, group)))
}

fn called(name: &str) -> anyhow::Result<Vec<u32>> {
    if let Ok(id) = name.parse() {
        return Ok(vec![id]);
    }
    let of_name = |(id, comm): (u32, String)| is_called(&comm, name).then_some(id);
    Ok(all("comm")?.into_iter().filter_map(of_name).collect())
}

/// This file of every process, by id.
fn all(file: &str) -> anyhow::Result<Vec<(u32, String)>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc").context("cannot read /proc")? {
        let path = entry.context("cannot read /proc")?.path();
        let id: Option<u32> = path
            .file_name()
            .and_then(|name| name.to_str()?.parse().ok());
        // One that ended since is none.
        let Ok(text) = std::fs::read_to_string(path.join(file)) else {
            continue;
        };
        all.extend(id.map(|id| (id, text)));
    }
    Ok(all)
}

/// State and group are the third and the fifth field, behind the name in brackets.
fn lives_in(stat: &str, group: i32) -> bool {
    let fields = stat.rsplit_once(')').map(|(_, rest)| rest);
    let mut fields = fields.unwrap_or_default().split_whitespace();
    let is_alive = fields.next().is_some_and(|state| !"ZX".contains(state));
    is_alive && fields.nth(1).and_then(|field| field.parse().ok()) == Some(group)
}

fn is_called(comm: &str, name: &str) -> bool {
    let known = name.as_bytes();
    comm.trim_end().as_bytes() == &known[..known.len().min(NAME_BYTES_MAX)]
}

fn of(id: u32) -> anyhow::Result<Usage> {
    let resident = field(&read(id, "status")?, "VmRSS:");
    let written = field(&read(id, "io")?, "write_bytes:");
    Ok(Usage {
        resident_kb: resident.with_context(|| format!("{id} has no memory: is it a process?"))?,
        processor: idle::processor_time(id)?,
        written_bytes: written.with_context(|| format!("nobody counts what {id} writes"))?,
    })
}

fn read(id: u32, file: &str) -> anyhow::Result<String> {
    let path = format!("/proc/{id}/{file}");
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
}

/// The number behind a name, of a file with a line each.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let status = "Name:\tx\nVmHWM:\t  9 kB\nVmRSS:\t  4312 kB\nRssAnon:\t 7 kB\n";
        assert_eq!(field(status, "VmRSS:"), Some(4312));
        let io = "wchar: 1\nwrite_bytes: 4096\ncancelled_write_bytes: 5\n";
        assert_eq!(field(io, "write_bytes:"), Some(4096));
        assert_eq!(field(io, "VmRSS:"), None);
    }

    #[test]
    fn a_long_name_is_known_by_its_beginning() {
        assert!(is_called("etcd\n", "etcd"));
        assert!(is_called("kube-controller\n", "kube-controller-manager"));
        assert!(!is_called("etcdctl\n", "etcd"));
    }

    #[test]
    fn one_that_ended_lives_in_no_group() {
        assert!(lives_in("7 (a) b) S 1 5 5 0 -1", 5));
        assert!(!lives_in("7 (a) S 5 6 5 0 -1", 5));
        assert!(!lives_in("7 (a) Z 1 5 5 0 -1", 5));
        assert!(!lives_in("", 5));
    }

    #[test]
    fn several_processes_are_summed() {
        let own = std::process::id();
        let one = usage(&[own]).unwrap();
        let two = usage(&[own, own]).unwrap();
        assert!(one.resident_kb > 0);
        assert!(two.resident_kb > one.resident_kb);
    }

    #[test]
    fn a_peak_is_seen_after_it_is_over() {
        let own = std::process::id();
        forget_peak(own).unwrap();
        let before = peak_kb(own).unwrap();
        let bytes = 16 << 20;
        // Each page is touched.
        assert!(
            std::hint::black_box(vec![1_u8; bytes])
                .iter()
                .all(|byte| *byte == 1)
        );
        let more = peak_kb(own).unwrap() - before;
        assert!(more * 1024 > bytes as u64 / 2, "{more} KB");
    }

    #[test]
    fn a_name_that_nobody_has_is_an_error() {
        let error = ids(&["no such process".to_owned()]).unwrap_err();
        assert!(error.to_string().contains("no such process"));
        let ids = ids(&["7".to_owned()]).unwrap();
        assert_eq!(ids, [[7]]);
    }
}
