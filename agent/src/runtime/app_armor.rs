//! AppArmor, on hosts that have it: which profile a container enters, and the runtime's own.
//!
//! The runtime's own is loaded once by the host's `apparmor_parser`, when the first container
//! needs it. A host where that fails confines those who do not ask for it by name: not at all, and
//! says so in its log.

use super::contract::{AppArmor, Security};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Once;

const OWN: &str = "coracle-default";
const LOADED: &str = "/sys/kernel/security/apparmor/profiles";
const PARSERS: [&str; 3] = [
    "/usr/sbin/apparmor_parser",
    "/sbin/apparmor_parser",
    "/usr/bin/apparmor_parser",
];

/// As much as Docker's: files but for the kernel's own, no mounts, no looking into others.
const POLICY: &str = "@{PROC}=/proc/

profile coracle-default flags=(attach_disconnected,mediate_deleted) {
  network,
  capability,
  file,
  umount,
  signal (receive) peer=unconfined,
  signal (send,receive) peer=coracle-default,
  ptrace (trace,read,tracedby,readby) peer=coracle-default,
  deny @{PROC}/* w,
  deny @{PROC}/{[^1-9],[^1-9][^0-9],[^1-9s][^0-9y][^0-9s],[^1-9][^0-9][^0-9][^0-9/]*}/** w,
  deny @{PROC}/sys/[^k]** w,
  deny @{PROC}/sys/kernel/{?,??,[^s][^h][^m]**} w,
  deny @{PROC}/sysrq-trigger rwklx,
  deny @{PROC}/mem rwklx,
  deny @{PROC}/kmem rwklx,
  deny @{PROC}/kcore rwklx,
  deny mount,
  deny /sys/[^f]*/** wklx,
  deny /sys/f[^s]*/** wklx,
  deny /sys/fs/[^c]*/** wklx,
  deny /sys/fs/c[^g]*/** wklx,
  deny /sys/fs/cg[^r]*/** wklx,
  deny /sys/firmware/** rwklx,
  deny /sys/devices/virtual/powercap/** rwklx,
  deny /sys/kernel/security/** rwklx,
}
";

/// Of the agent's life: the reason is the same for every container.
static UNCONFINED: Once = Once::new();

/// What a container gets.
#[derive(Debug, Eq, PartialEq)]
enum Wanted<'a> {
    Nothing,
    /// Fails when it cannot be had, if that was asked for.
    Own {
        is_asked: bool,
    },
    Loaded(&'a str),
}

fn decide(security: &Security, is_enabled: bool) -> Result<Wanted<'_>, String> {
    if security.privileged && !matches!(security.app_armor, AppArmor::Localhost(_)) {
        return Ok(Wanted::Nothing);
    }
    match &security.app_armor {
        AppArmor::Unconfined => Ok(Wanted::Nothing),
        AppArmor::Unsaid if !is_enabled => Ok(Wanted::Nothing),
        _ if !is_enabled => Err("apparmor is not supported".to_owned()),
        AppArmor::Unsaid => Ok(Wanted::Own { is_asked: false }),
        AppArmor::RuntimeDefault => Ok(Wanted::Own { is_asked: true }),
        AppArmor::Localhost(name) => {
            let name = name.strip_prefix("localhost/").unwrap_or(name);
            Ok(Wanted::Loaded(name))
        }
    }
}

/// `name (enforce)`, one a line.
fn is_listed(profiles: &str, name: &str) -> bool {
    profiles
        .lines()
        .filter_map(|line| line.rsplit_once(" ("))
        .any(|(listed, _)| listed == name)
}

fn is_loaded(name: &str) -> bool {
    fs::read_to_string(LOADED).is_ok_and(|profiles| is_listed(&profiles, name))
}

/// Sees to it that the profile is there; errors in the words of containerd.
pub fn prepare(security: &Security) -> Result<(), String> {
    match decide(security, crate::kernel::has_app_armor())? {
        Wanted::Nothing => Ok(()),
        Wanted::Loaded(name) if is_loaded(name) => Ok(()),
        Wanted::Loaded(name) => Err(format!("apparmor profile not found {name}")),
        Wanted::Own { .. } if is_loaded(OWN) => Ok(()),
        Wanted::Own { is_asked } => match load() {
            Err(error) if is_asked => Err(error),
            Err(error) => {
                UNCONFINED.call_once(|| tracing::warn!(%error, "containers run without AppArmor"));
                Ok(())
            }
            Ok(()) => Ok(()),
        },
    }
}

/// The profile to enter, after `prepare`.
pub fn profile(security: &Security) -> Result<Option<String>, String> {
    let wanted = decide(security, crate::kernel::has_app_armor())?;
    Ok(entered(&wanted, || is_loaded(OWN)))
}

/// What was asked for is entered whether it is there or not: the kernel refuses then.
fn entered(wanted: &Wanted<'_>, is_own_loaded: impl FnOnce() -> bool) -> Option<String> {
    match wanted {
        Wanted::Nothing => None,
        Wanted::Loaded(name) => Some((*name).to_owned()),
        Wanted::Own { is_asked } => (*is_asked || is_own_loaded()).then(|| OWN.to_owned()),
    }
}

fn load() -> Result<(), String> {
    let failed =
        |why: &dyn std::fmt::Display| format!("cannot load the AppArmor profile {OWN}: {why}");
    let parser = PARSERS.iter().find(|path| Path::new(path).exists());
    let parser = parser.ok_or_else(|| failed(&"this host has no apparmor_parser"))?;
    let mut child = Command::new(parser)
        .arg("-Kr")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&error))?;
    let written = child
        .stdin
        .take()
        .map(|mut stdin| stdin.write_all(POLICY.as_bytes()));
    let ended = child.wait_with_output().map_err(|error| failed(&error))?;
    match written {
        Some(Ok(())) if ended.status.success() => Ok(()),
        _ => {
            let said = String::from_utf8_lossy(&ended.stderr);
            let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
            Err(failed(&format!("{} {said}", ended.status).trim_end()))
        }
    }
}

#[cfg(test)]
mod tests;
