//! What this host can give a container.

use super::ShimError;
use crate::runtime::cgroups::Hierarchies;
use crate::runtime::record::{self, ContainerRecord, STARTED, StartedRecord};
use crate::runtime::spec::{Given, Host};
use nix::sys::stat::{major, minor};
use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// In the kernel's order: the place is the bit.
const CAPABILITIES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];
const CONTROLLERS: [&str; 4] = ["cpu", "memory", "pids", "hugetlb"];
/// Of /dev: a host has some hundreds.
const DEVICES_MAX: usize = 4096;

pub fn find(hierarchies: &Hierarchies, record: &ContainerRecord) -> Host {
    let parent = record.sandbox.cgroup.as_str();
    let controllers = CONTROLLERS
        .into_iter()
        .filter(|one| hierarchies.controls(one, parent));
    Host {
        capabilities: capabilities(),
        unified_cgroups: hierarchies.is_unified(),
        controllers: controllers.map(str::to_owned).collect(),
        limits_swap: hierarchies.limits_swap(parent),
        huge_page_sizes: huge_page_sizes(),
        thermal_throttles: thermal_throttles(),
        app_armor_profile: None,
        devices: if record.config.security.privileged {
            devices()
        } else {
            Vec::new()
        },
        given: Vec::new(),
        pid_namespace: None,
        own_groups: Vec::new(),
    }
}

/// What the node has at the places of a container's devices.
pub fn given(record: &ContainerRecord) -> Result<Vec<Given>, ShimError> {
    let mut found: Vec<Given> = Vec::new();
    for device in &record.config.devices {
        let shown = device.host_path.display();
        let meta = fs::metadata(&device.host_path);
        let meta = meta.map_err(ShimError::io(format!("cannot look at {shown}")))?;
        let path: PathBuf = Path::new("/")
            .join(&device.container_path)
            .components()
            .collect();
        let is_bound = !path.starts_with("/dev");
        let is_taken = found.iter().any(|other| other.path == path);
        let given = node(path, &meta, device.read_only, is_bound)
            .ok_or_else(|| ShimError::Failed(format!("{shown} is not a device node")))?;
        if is_taken {
            let path = given.path.display();
            return Err(ShimError::Failed(format!("two devices are to be {path}")));
        }
        found.push(given);
    }
    Ok(found)
}

/// None for what is no device.
fn node(path: PathBuf, meta: &Metadata, read_only: bool, is_bound: bool) -> Option<Given> {
    let kind = match (
        meta.file_type().is_block_device(),
        meta.file_type().is_char_device(),
    ) {
        (true, _) => 'b',
        (_, true) => 'c',
        _ => return None,
    };
    Some(Given {
        path,
        kind,
        major: major(meta.rdev()),
        minor: minor(meta.rdev()),
        mode: meta.mode() & 0o7777,
        uid: meta.uid(),
        gid: meta.gid(),
        read_only,
        is_bound,
    })
}

/// The one that a container joins: of another container, or of the whole pod.
pub fn pid_namespace(record: &ContainerRecord) -> Result<Option<PathBuf>, ShimError> {
    let Some(target) = &record.config.pid_namespace_of else {
        let shared = record.sandbox_directory.join("ns/pid");
        return Ok(record.sandbox.config.shared_pid.then_some(shared));
    };
    let directory = Path::new("..").join(&target.0);
    let started = record::read::<StartedRecord>(&directory.join(STARTED));
    let pid = started.ok().map(|started| started.pid);
    // Once it has ended, its process id may be anybody's.
    let runs = pid.filter(|pid| {
        fs::read_to_string(format!("/proc/{pid}/cgroup"))
            .is_ok_and(|groups| groups.contains(target.0.as_str()))
    });
    match runs {
        Some(pid) => Ok(Some(format!("/proc/{pid}/ns/pid").into())),
        None => Err(ShimError::Failed(format!(
            "the container {target} does not run"
        ))),
    }
}

/// Those this process has itself and may pass on.
fn capabilities() -> Vec<String> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok())
            .unwrap_or(0)
    };
    let mine = set("CapPrm:") & set("CapBnd:");
    let names = CAPABILITIES
        .iter()
        .enumerate()
        .filter(|(bit, _)| mine & (1 << bit) != 0);
    names.map(|(_, name)| (*name).to_owned()).collect()
}

/// `hugepages-2048kB` and the like.
fn huge_page_sizes() -> Vec<String> {
    let sizes = fs::read_dir("/sys/kernel/mm/hugepages")
        .into_iter()
        .flatten();
    let mut found: Vec<String> = sizes
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_str()?.to_owned();
            let kib: u64 = name
                .strip_prefix("hugepages-")?
                .strip_suffix("kB")?
                .parse()
                .ok()?;
            Some(match kib {
                _ if kib >= 1 << 20 => format!("{}GB", kib >> 20),
                _ if kib >= 1 << 10 => format!("{}MB", kib >> 10),
                _ => format!("{kib}KB"),
            })
        })
        .collect();
    found.sort();
    found
}

fn thermal_throttles() -> Vec<String> {
    let cpus = fs::read_dir("/sys/devices/system/cpu")
        .into_iter()
        .flatten();
    let mut found: Vec<String> = cpus
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("cpu"));
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        })
        .map(|entry| entry.path().join("thermal_throttle"))
        .filter(|path| path.exists())
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    found.sort();
    found
}

fn devices() -> Vec<Given> {
    let mut found = Vec::new();
    let mut pending = vec![Path::new("/dev").to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if metadata.is_dir() {
                let own = ["pts", "shm", "mqueue", "fd", "hugepages"];
                if !own.iter().any(|name| path == Path::new("/dev").join(name)) {
                    pending.push(path);
                }
                continue;
            }
            if path == Path::new("/dev/console") || found.len() >= DEVICES_MAX {
                continue;
            }
            found.extend(node(path, &metadata, false, false));
        }
    }
    found
}

#[cfg(test)]
mod tests;
