//! The program of the shims, where nobody can write to it.
//!
//! A process in a container may come to see the program that it was made by (`/proc/PID/exe`),
//! and as root there it could write to it once nothing runs it. What it sees is a mount of its
//! own, which is read-only and is attached nowhere.

use crate::mounts::{self, Attributes};
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// Kept as long as shims are started by its name.
pub struct Sealed(Option<OwnedFd>);

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sealed").field(&self.0.is_some()).finish()
    }
}

impl Sealed {
    /// Before Linux 5.12 the program is used as it is.
    pub fn new(program: &Path) -> Self {
        let sealed = seal(program);
        if let Err(error) = &sealed {
            tracing::debug!(%error, "containers can see the agent's program itself");
        }
        Self(sealed.ok())
    }

    /// The name to run it by; found by the child before it closes what is not its own.
    pub fn name(&self, program: &OsString) -> OsString {
        match &self.0 {
            Some(mount) => format!("/proc/self/fd/{}", mount.as_raw_fd()).into(),
            None => program.clone(),
        }
    }
}

fn seal(program: &Path) -> io::Result<OwnedFd> {
    let mount = mounts::copy(program, false)?;
    mounts::set_attributes(&mount, &Attributes::READ_ONLY, false)?;
    Ok(mount)
}
