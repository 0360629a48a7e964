//! A process that holds a new user namespace, until it is let go of.
//!
//! Its ids are written from outside, by the one who has the right to; what else is to be made
//! inside is made by the process, as the root of its namespace.

use super::{ShimError, process};
use crate::runtime::IdRange;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Pid, Uid};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

const ERROR_BYTES_MAX: u64 = 4096;

#[derive(Debug)]
pub struct Held {
    pid: Pid,
    line: UnixStream,
}

impl Held {
    pub fn make(
        range: IdRange,
        inside: impl FnOnce() -> Result<(), ShimError>,
    ) -> Result<Self, ShimError> {
        let (line, theirs) =
            UnixStream::pair().map_err(ShimError::io("cannot make a pair of sockets"))?;
        let pid = process::spawn(|| {
            // Else it would never see our end closed.
            let _ = nix::unistd::close(line.as_raw_fd());
            hold(&theirs, inside)
        })
        .map_err(ShimError::io("cannot fork"))?;
        drop(theirs);
        let mut held = Self { pid, line };
        held.hear()?;
        let map = format!("0 {} {}\n", range.first, range.count);
        for file in ["uid_map", "gid_map"] {
            fs::write(format!("/proc/{pid}/{file}"), &map)
                .map_err(ShimError::io(format!("cannot write {file}")))?;
        }
        held.line
            .write_all(b"m")
            .map_err(ShimError::io("the holder of the user namespace is gone"))?;
        held.hear()?;
        Ok(held)
    }

    /// Of `user`, `net`, ..
    pub fn path(&self, kind: &str) -> String {
        format!("/proc/{}/ns/{kind}", self.pid)
    }

    pub fn open(&self) -> Result<File, ShimError> {
        File::open(self.path("user")).map_err(ShimError::io("cannot open the user namespace"))
    }

    /// One step of the process: done, or what went wrong.
    fn hear(&mut self) -> Result<(), ShimError> {
        let mut said = [0];
        let heard = self.line.read_exact(&mut said);
        heard.map_err(ShimError::io("the holder of the user namespace is gone"))?;
        if said == *b"+" {
            return Ok(());
        }
        let mut text = String::new();
        let _ = (&self.line).take(ERROR_BYTES_MAX).read_to_string(&mut text);
        Err(ShimError::Failed(text))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.line.shutdown(std::net::Shutdown::Both);
        let _ = process::wait(self.pid);
    }
}

fn hold(mut line: &UnixStream, inside: impl FnOnce() -> Result<(), ShimError>) -> i32 {
    let made = enter(line).and_then(|()| inside());
    if let Err(error) = made {
        let text = crate::error::chain(&error);
        let _ = line.write_all(format!("-{text}").as_bytes());
        return 1;
    }
    let _ = line.write_all(b"+");
    let _ = line.read(&mut [0]); // Until the other side lets go.
    0
}

fn enter(mut line: &UnixStream) -> Result<(), ShimError> {
    unshare(CloneFlags::CLONE_NEWUSER).map_err(ShimError::io("cannot make a user namespace"))?;
    let gone = || ShimError::io("nobody waits for the user namespace");
    line.write_all(b"+").map_err(gone())?;
    line.read_exact(&mut [0]).map_err(gone())?;
    let (user, group) = (Uid::from_raw(0), Gid::from_raw(0));
    nix::unistd::setgroups(&[])
        .and_then(|()| nix::unistd::setresgid(group, group, group))
        .and_then(|()| nix::unistd::setresuid(user, user, user))
        .map_err(ShimError::io(
            "cannot become the root of the user namespace",
        ))
}
