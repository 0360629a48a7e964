//! The control groups of pods and containers, on version 1, version 2 and hybrid hosts.
//!
//! Containers' own limits are set by libcontainer; this is what surrounds it: pods' groups, the
//! shims' group, killing, counting out-of-memory kills, usage. A limit that the host cannot set
//! is left out, never an error.

mod clear; // The end of a group.
mod limits; // Pure but for reading and writing.
mod usage; // What groups use, and the bound of all pods.
pub use usage::stalls;

pub use limits::weight;

use super::contract::Resources;
use crate::mounts::{self, Mounted};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Passes over the members of a group that is being killed; each sees what the last one missed.
const KILL_PASSES_MAX: usize = 20;
const SWAP_V1: &str = "memory.memsw.limit_in_bytes";
/// Controllers of version 1 in whose hierarchies libcontainer makes a group for each container.
const LIMITING: [&str; 12] = [
    "blkio",
    "cpu",
    "cpuacct",
    "cpuset",
    "devices",
    "freezer",
    "hugetlb",
    "memory",
    "net_cls",
    "net_prio",
    "perf_event",
    "pids",
];

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hierarchies {
    /// Version 1 mounts with what they control; `name=systemd` too.
    v1: Vec<(PathBuf, Vec<String>)>,
    /// The version 2 mount: all there is, or beside version 1.
    v2: Option<PathBuf>,
}

impl Hierarchies {
    pub fn of_host() -> io::Result<Self> {
        Ok(Self::among(mounts::table()?))
    }

    fn among(mounts: Vec<Mounted>) -> Self {
        let mut found = Self::default();
        for Mounted {
            point,
            kind,
            options,
            ..
        } in mounts
        {
            match kind.as_str() {
                "cgroup2" if found.v2.is_none() => found.v2 = Some(point),
                "cgroup" => {
                    let controls = |option: &&str| !matches!(*option, "rw" | "ro" | "xattr");
                    let all: Vec<String> = options
                        .split(',')
                        .filter(controls)
                        .map(str::to_owned)
                        .collect();
                    if !found.v1.iter().any(|(_, known)| *known == all) {
                        found.v1.push((point, all));
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// Whether this host can limit groups by the controller at all.
    pub fn offers(&self, controller: &str) -> bool {
        if !self.is_unified() {
            return self.v1_mount(controller).is_some();
        }
        let all = self
            .v2
            .as_ref()
            .map(|mount| mount.join("cgroup.controllers"));
        all.and_then(|file| fs::read_to_string(file).ok())
            .is_some_and(|text| text.split_whitespace().any(|one| one == controller))
    }

    pub fn is_unified(&self) -> bool {
        self.v1.is_empty()
    }

    /// Whether groups in `parent` can have limits of this kind.
    pub fn controls(&self, controller: &str, parent: &str) -> bool {
        let Some(directory) = self.directory(controller, parent) else {
            return false;
        };
        if !self.is_unified() {
            return true;
        }
        fs::read_to_string(directory.join("cgroup.subtree_control"))
            .is_ok_and(|given| given.split_whitespace().any(|one| one == controller))
    }

    /// Whether swap can be bounded for groups in `parent`.
    pub fn limits_swap(&self, parent: &str) -> bool {
        let unified = self.is_unified();
        let file = if unified { "memory.swap.max" } else { SWAP_V1 };
        let directory = self.directory("memory", parent);
        directory.is_some_and(|directory| directory.join(file).exists())
    }

    /// Makes a container's group where version 2 is all there is: no file of it says which devices
    /// may be opened.
    pub fn make_unified(&self, group: &str) -> io::Result<Option<PathBuf>> {
        let mount = self.v2.as_ref().filter(|_| self.is_unified());
        let group = mount.map(|mount| below(mount, group));
        group.as_deref().map_or(Ok(()), fs::create_dir_all)?;
        Ok(group)
    }

    fn v1_mount(&self, controller: &str) -> Option<&Path> {
        let has =
            |(_, controls): &&(PathBuf, Vec<String>)| controls.iter().any(|c| c == controller);
        self.v1.iter().find(has).map(|(mount, _)| mount.as_path())
    }

    /// Where a group is in each hierarchy of version 1 that limits something, by controller.
    pub fn v1_groups(&self, group: &str) -> Vec<(String, PathBuf)> {
        let of = |(mount, controls): &(PathBuf, Vec<String>)| -> Vec<(String, PathBuf)> {
            let known = controls
                .iter()
                .filter(|one| LIMITING.contains(&one.as_str()));
            known
                .map(|one| (one.clone(), below(mount, group)))
                .collect()
        };
        self.v1.iter().flat_map(of).collect()
    }

    fn mounts(&self) -> impl Iterator<Item = &Path> {
        self.v1
            .iter()
            .map(|(mount, _)| mount.as_path())
            .chain(self.v2.as_deref())
    }

    fn directory(&self, controller: &str, group: &str) -> Option<PathBuf> {
        let mount = match self.is_unified() {
            true => self.v2.as_deref(),
            false => self.v1_mount(controller),
        };
        mount.map(|mount| below(mount, group))
    }

    /// Makes the group all others are in, and hands its controllers down.
    pub fn make_root(&self, group: &str) -> io::Result<()> {
        match &self.v2 {
            Some(mount) if self.is_unified() => {
                let mut at = mount.clone();
                hand_down(&at)?;
                for part in group.split('/').filter(|part| !part.is_empty()) {
                    at.push(part);
                    make(&at)?;
                    hand_down(&at)?;
                }
                Ok(())
            }
            _ => Ok(()), // Version 1 groups are made as they are needed.
        }
    }

    /// Makes a pod's group with its limits.
    pub fn make_pod(&self, group: &str, resources: &Resources) -> io::Result<()> {
        self.make_root(group)?;
        for controller in ["memory", "cpu", "pids", "hugetlb"] {
            if let Some(directory) = self.directory(controller, group) {
                fs::create_dir_all(&directory)?;
            }
        }
        for (file, value) in huge_page_limits(resources, self.is_unified()) {
            if let Some(directory) = self.directory("hugetlb", group) {
                let _ = fs::write(directory.join(file), value);
            }
        }
        for (controller, file, value) in limits::files(resources, self.is_unified()) {
            if let Some(directory) = self.directory(controller, group) {
                let _ = fs::write(directory.join(file), value);
            }
        }
        Ok(())
    }

    /// All of the memory that is counted as the group's, what could be dropped included.
    pub fn memory_usage_bytes(&self, group: &str) -> Option<u64> {
        let file = match self.is_unified() {
            true => "memory.current",
            false => "memory.usage_in_bytes",
        };
        number(&self.directory("memory", group)?.join(file))
    }

    /// Puts this process in a group of the hierarchies that service managers kill by, so that
    /// what it starts is not in the agent's.
    pub fn leave_service(&self, group: &str) {
        let named = self
            .v1
            .iter()
            .filter(|(_, controls)| controls.iter().any(|control| control.starts_with("name=")));
        for mount in named
            .map(|(mount, _)| mount.as_path())
            .chain(self.v2.as_deref())
        {
            enter(&below(mount, group));
        }
    }

    /// Puts this process where its memory is not counted as the agent's. Each hierarchy costs a
    /// move of some milliseconds: not before a start.
    pub fn leave_accounts(&self, group: &str) {
        if let Some(mount) = self.v1_mount("memory") {
            enter(&below(mount, group));
        }
    }

    /// Puts this process in a group of every hierarchy, so that killing the group ends it.
    pub fn enter(&self, group: &str) {
        for mount in self.mounts() {
            enter(&below(mount, group));
        }
    }

    /// Kills every process in the group and below it. True when none was left.
    pub fn kill(&self, group: &str) -> bool {
        if self.is_unified()
            && let Some(directory) = self.directory("", group)
            && fs::write(directory.join("cgroup.kill"), "1").is_ok()
        {
            return true;
        }
        for _ in 0..KILL_PASSES_MAX {
            let members = self.members(group);
            if members.is_empty() {
                return true;
            }
            for pid in members {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
        false
    }

    /// From the first hierarchy that has the group at all.
    pub fn members(&self, group: &str) -> Vec<i32> {
        let mut pids = Vec::new();
        let preferred = ["pids", "memory", "devices"];
        let mount = preferred
            .iter()
            .find_map(|controller| self.directory(controller, group));
        for directory in mount.into_iter().flat_map(|top| tree(&top)) {
            let text = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
            pids.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
        }
        pids
    }

    /// Removes the group and those below it. What still has processes stays.
    pub fn remove(&self, group: &str) {
        for mount in self.mounts() {
            for directory in tree(&below(mount, group)).into_iter().rev() {
                let _ = fs::remove_dir(directory);
            }
        }
    }

    pub fn exists(&self, group: &str) -> bool {
        self.mounts().any(|mount| below(mount, group).exists())
    }

    /// How many processes of the group the kernel killed for want of memory.
    pub fn oom_kills(&self, group: &str) -> u64 {
        let file = if self.is_unified() {
            "memory.events"
        } else {
            "memory.oom_control"
        };
        let Some(directory) = self.directory("memory", group) else {
            return 0;
        };
        keyed(&directory.join(file), "oom_kill").unwrap_or(0)
    }
}

/// A hierarchy that does not take it keeps it where it was.
fn enter(directory: &Path) {
    if fs::create_dir_all(directory).is_ok() {
        let _ = fs::write(directory.join("cgroup.procs"), "0");
    }
}

fn below(mount: &Path, group: &str) -> PathBuf {
    mount.join(group.trim_start_matches('/'))
}

/// The directory and all below it, parents first; nothing when it is not there.
fn tree(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![top.to_owned()];
    while let Some(directory) = pending.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        let is_directory = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|t| t.is_dir());
        pending.extend(
            entries
                .flatten()
                .filter(is_directory)
                .map(|entry| entry.path()),
        );
        found.push(directory);
    }
    found
}

fn make(directory: &Path) -> io::Result<()> {
    match fs::create_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Version 2: lets the children be limited. A group that holds processes (the top one inside a
/// container does) cannot do that, so they move into a leaf first.
fn hand_down(directory: &Path) -> io::Result<()> {
    let all = fs::read_to_string(directory.join("cgroup.controllers"))?;
    let control = directory.join("cgroup.subtree_control");
    let given = fs::read_to_string(&control)?;
    for controller in all.split_whitespace() {
        if given.split_whitespace().any(|one| one == controller) {
            continue;
        }
        let wanted = format!("+{controller}");
        let Err(error) = fs::write(&control, &wanted) else {
            continue;
        };
        if error.raw_os_error() == Some(libc::EBUSY) {
            let leaf = directory.join("init");
            make(&leaf)?;
            let members = fs::read_to_string(directory.join("cgroup.procs"))?;
            for pid in members.lines() {
                let _ = fs::write(leaf.join("cgroup.procs"), pid);
            }
            let _ = fs::write(&control, &wanted);
        }
    }
    Ok(())
}

fn huge_page_limits(resources: &Resources, unified: bool) -> Vec<(String, String)> {
    let end = if unified { "max" } else { "limit_in_bytes" };
    let limits = resources.huge_page_limits.iter();
    limits
        .map(|(size, bytes)| (format!("hugetlb.{size}.{end}"), bytes.to_string()))
        .collect()
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn keyed(path: &Path, key: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests;
