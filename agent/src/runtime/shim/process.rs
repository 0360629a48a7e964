//! Forking, in a process of one thread.
#![allow(unsafe_code)] // fork(2) has no safe form.

use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use std::io;

/// Runs `child` in a forked process, which ends with its answer.
pub fn spawn(child: impl FnOnce() -> i32) -> io::Result<Pid> {
    // SAFETY: this process has one thread, so that no lock is held by another one.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            let code = child();
            // SAFETY: ends at once; the parent's buffers and exit handlers are not ours to run.
            unsafe { libc::_exit(code) }
        }
    }
}

/// The exit code of a process of ours, 128 + signal when it was killed.
pub fn wait(pid: Pid) -> io::Result<i32> {
    loop {
        match waitpid(pid, None) {
            Ok(WaitStatus::Exited(_, code)) => return Ok(code),
            Ok(WaitStatus::Signaled(_, signal, _)) => return Ok(128 + signal as i32),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Rust ignores SIGPIPE, and a parent may ignore or block others: a container starts with none
/// of that.
pub fn reset_signals() {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    for signal in Signal::iterator() {
        if !matches!(signal, Signal::SIGKILL | Signal::SIGSTOP) {
            // SAFETY: the default action runs no code of ours.
            let _ = unsafe { sigaction(signal, &default) };
        }
    }
    let _ = SigSet::empty().thread_set_mask();
}

/// Children that end leave nothing to be waited for.
pub fn ignore_children() {
    let ignored = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // SAFETY: ignoring runs no code of ours.
    let _ = unsafe { sigaction(Signal::SIGCHLD, &ignored) };
}

/// Any signal by number, real-time ones too.
pub fn kill(pid: Pid, signal: i32) {
    // SAFETY: kill(2) touches no memory of ours.
    unsafe { libc::kill(pid.as_raw(), signal) };
}

/// Descriptors that an ancestor left open without meaning to; a pipe held by a process that
/// lives as long as a container would never end for its reader.
pub fn close_inherited() {
    // SAFETY: called first of all, before this process opened anything of its own.
    unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
}
