//! The program of the shims, where nobody can write to it.
//!
//! A process in a container may come to see the program that it was made by (`/proc/PID/exe`),
//! and as root there it could write to it once nothing runs it. What it sees is a mount of its
//! own, which is read-only and is attached nowhere.

use libcontainer::syscall::linux::{MOUNT_ATTR_RDONLY, MountAttr};
use libcontainer::syscall::syscall::create_syscall;
use std::ffi::OsString;
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

const EMPTY_PATH: u32 = 0x1000; // AT_EMPTY_PATH
const CLONE: u32 = 1; // OPEN_TREE_CLONE
const CLOSE_ON_EXEC: u32 = 0o200_0000; // OPEN_TREE_CLOEXEC

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

fn seal(program: &Path) -> Result<OwnedFd, libcontainer::syscall::SyscallError> {
    let system = create_syscall();
    let mount = system.open_tree(libc::AT_FDCWD, program.to_str(), CLONE | CLOSE_ON_EXEC)?;
    let read_only = MountAttr {
        attr_set: MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    system.mount_setattr(
        mount.as_fd(),
        Path::new(""),
        EMPTY_PATH,
        &read_only,
        size_of::<MountAttr>(),
    )?;
    Ok(mount)
}
