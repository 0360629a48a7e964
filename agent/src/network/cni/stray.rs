//! Plugins that an agent which was killed left running: they are ended before others are asked about
//! the same sandbox.
//!
//! They are known by what they were started with: the sandbox, and where plugins are. What a plugin
//! left behind on purpose, as a daemon, has a session of its own and stays.

use super::plugin;
use crate::runtime::SandboxId;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpgid, getsid};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

/// For those that were killed to be gone.
const KILL_MAX: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Ends them, with all of their groups. An error when some are left.
pub async fn end(sandbox: &SandboxId, directories: &[PathBuf]) -> io::Result<()> {
    let marks = marks(sandbox, directories);
    let ending = async {
        loop {
            let marks = marks.clone();
            let found = tokio::task::spawn_blocking(move || kill(&marks)).await;
            if found.map_err(io::Error::other)?? == 0 {
                return Ok(());
            }
            tracing::warn!(%sandbox, "ends network plugins that a former agent left running");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let ended = tokio::time::timeout(KILL_MAX, ending).await;
    ended.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Each is in the environment of such a plugin.
fn marks(sandbox: &SandboxId, directories: &[PathBuf]) -> [Vec<u8>; 2] {
    let mark = |name: &str, value: OsString| {
        let mut mark = name.as_bytes().to_vec();
        mark.push(b'=');
        mark.extend(value.as_bytes());
        mark
    };
    [
        mark("CNI_CONTAINERID", sandbox.0.clone().into()),
        mark("CNI_PATH", plugin::joined(directories)),
    ]
}

/// How many there were.
fn kill(marks: &[Vec<u8>]) -> io::Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let id = Pid::from_raw(id);
        // Who ends meanwhile is none.
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        if has_all(&environment, marks) && leads_its_group(id) {
            count += 1;
            let _ = killpg(id, Signal::SIGKILL);
        }
    }
    Ok(count)
}

fn has_all(environment: &[u8], marks: &[Vec<u8>]) -> bool {
    let has = |mark: &Vec<u8>| environment.split(|byte| *byte == 0).any(|one| one == mark);
    marks.iter().all(has)
}

/// And no session, as a daemon would.
fn leads_its_group(id: Pid) -> bool {
    getpgid(Some(id)) == Ok(id) && getsid(Some(id)).is_ok_and(|session| session != id)
}

#[cfg(test)]
mod tests;
