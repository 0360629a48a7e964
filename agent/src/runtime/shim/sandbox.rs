//! `coracle shim sandbox`: makes the namespaces of a pod and pins them to files.

use super::user_namespace::Held;
use super::{ShimError, mapped, reaper};
use crate::runtime::record::{self, SANDBOX, SandboxRecord};
use crate::runtime::{IdRange, SandboxConfig};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

const SHM_BYTES: u64 = 64 << 20;
/// containerd's defaults: pods may ping and may listen on low ports without being root.
const NETWORK_SYSCTLS: [(&str, &str); 2] = [
    ("net.ipv4.ip_unprivileged_port_start", "0"),
    ("net.ipv4.ping_group_range", "0 2147483647"),
];

#[allow(clippy::print_stderr)] // The agent reads what went wrong from there.
pub fn main(directory: &Path) -> i32 {
    match make(directory) {
        Ok(()) => 0,
        Err(error) => {
            eprint!("{}", crate::error::chain(&error));
            1
        }
    }
}

fn make(directory: &Path) -> Result<(), ShimError> {
    std::env::set_current_dir(directory).map_err(ShimError::io(format!(
        "cannot enter {}",
        directory.display()
    )))?;
    let record: SandboxRecord = record::read(Path::new(SANDBOX))
        .map_err(ShimError::io("cannot read the sandbox's record"))?;
    let config = &record.config;
    let mut flags = CloneFlags::empty();
    let mut pins = Vec::new();
    if config.id_range.is_some() {
        pins.push("user");
    }
    if !config.host_network {
        flags |= CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWUTS;
        pins.extend(["net", "uts"]);
    }
    if !config.host_ipc {
        flags |= CloneFlags::CLONE_NEWIPC;
        pins.push("ipc");
        mount_shm(config.shm_bytes)?;
    }
    match config.id_range {
        Some(range) => {
            let held = Held::make(range, || inside(config, flags))?;
            pins.into_iter()
                .try_for_each(|kind| pin(kind, &held.path(kind)))?;
        }
        None => {
            inside(config, flags)?;
            pins.into_iter()
                .try_for_each(|kind| pin(kind, &format!("/proc/self/ns/{kind}")))?;
        }
    }
    match config.shared_pid {
        true => reaper::start(&record),
        false => Ok(()),
    }
}

/// Tells whether pods can have user namespaces on this kernel and this file system.
pub fn probe(directory: &Path) -> i32 {
    let range = IdRange {
        first: 65_536,
        count: 65_536,
    };
    let probed =
        Held::make(range, || Ok(())).and_then(|held| mapped::probe(directory, &held.open()?));
    i32::from(probed.is_err())
}

/// Makes the namespaces, as the root of the user namespace they are to belong to.
fn inside(config: &SandboxConfig, flags: CloneFlags) -> Result<(), ShimError> {
    unshare(flags).map_err(ShimError::io("cannot make the namespaces"))?;
    if !config.host_network {
        nix::unistd::sethostname(&config.hostname)
            .map_err(ShimError::io("cannot set the host name"))?;
        for (name, value) in NETWORK_SYSCTLS {
            let _ = set_sysctl(name, value); // A kernel may lack them.
        }
    }
    set_sysctls(&config.sysctls)
}

fn mount_shm(asked_bytes: u64) -> Result<(), ShimError> {
    let size = if asked_bytes == 0 {
        SHM_BYTES
    } else {
        asked_bytes
    };
    let options = format!("mode=1777,size={size}");
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC | MsFlags::MS_NODEV;
    mount(
        Some("shm"),
        "shm",
        Some("tmpfs"),
        flags,
        Some(options.as_str()),
    )
    .map_err(ShimError::io("cannot mount /dev/shm"))
}

fn set_sysctls(sysctls: &BTreeMap<String, String>) -> Result<(), ShimError> {
    for (name, value) in sysctls {
        set_sysctl(name, value).map_err(ShimError::io(format!("cannot set the sysctl {name}")))?;
    }
    Ok(())
}

fn set_sysctl(name: &str, value: &str) -> std::io::Result<()> {
    if name.contains("..") || name.contains("//") || name.starts_with('.') {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    // A part of a name may have dots in it, which are written as slashes.
    let swap = |letter| match letter {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    let path: String = name.chars().map(swap).collect();
    fs::write(Path::new("/proc/sys").join(path), value)
}

/// A mount of the namespace's file keeps it alive without any process in it.
pub fn pin(kind: &str, source: &str) -> Result<(), ShimError> {
    let target = Path::new("ns").join(kind);
    File::create(&target).map_err(ShimError::io(format!("cannot make {}", target.display())))?;
    let none: Option<&str> = None;
    mount(Some(source), &target, none, MsFlags::MS_BIND, none)
        .map_err(ShimError::io(format!("cannot pin the {kind} namespace")))
}
