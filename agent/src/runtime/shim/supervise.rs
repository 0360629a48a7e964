//! Keeps a running container: log, requests of the agent, and the end.
//!
//! One poll loop that sleeps when nothing happens. Requests are lines on the socket `s`:
//! `kill SIGNAL`, `resize WIDTH HEIGHT`, `reopen`. A connection that ends tells the agent that
//! the container did; its exit record is on disk by then.

use super::log::{Lines, Log};
use crate::runtime::cgroups::Hierarchies;
use crate::runtime::record::{self, ContainerRecord, EXIT, ExitRecord};
use coracle_client::clock::Clock;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, Flock, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, read};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// The agent has one connection; a person may open another. More are turned away.
const CLIENTS_MAX: usize = 16;
/// Longest request line.
const REQUEST_BYTES_MAX: usize = 64;
/// How long what is still in the pipes is read after the end, when a process that left the
/// container holds them open.
const DRAIN_TIMEOUT_MS: u16 = 1000;
const READ_BYTES: usize = super::log::LINE_BYTES_MAX;

#[derive(Debug)]
pub struct Kept {
    pub pid: Pid,
    pub record: ContainerRecord,
    pub hierarchies: Hierarchies,
    pub listener: UnixListener,
    pub log: Log,
    pub outputs: Outputs,
    /// One shim a container.
    pub _lock: Flock<File>,
}

/// Our ends of the container's streams.
#[derive(Debug)]
pub struct Outputs {
    streams: Vec<(OwnedFd, Lines)>,
    /// Held open so that the container's input does not end.
    _stdin: Option<OwnedFd>,
    has_terminal: bool,
}

impl Outputs {
    pub fn pipes(stdin: Option<OwnedFd>, stdout: OwnedFd, stderr: OwnedFd) -> Self {
        let streams = vec![(stdout, Lines::of("stdout")), (stderr, Lines::of("stderr"))];
        Self {
            streams,
            _stdin: stdin,
            has_terminal: false,
        }
    }

    pub fn terminal(terminal: OwnedFd) -> Self {
        let streams = vec![(terminal, Lines::of("stdout"))];
        Self {
            streams,
            _stdin: None,
            has_terminal: true,
        }
    }
}

struct Client {
    stream: UnixStream,
    line: Vec<u8>,
}

pub fn supervise(mut kept: Kept) -> i32 {
    // Asking the shim to end would orphan the container: only the container's end ends it.
    let mut deaf = SigSet::empty();
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGQUIT,
    ] {
        deaf.add(signal);
    }
    let _ = deaf.thread_block();
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGCHLD);
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let signals = mask
        .thread_block()
        .and_then(|()| SignalFd::with_flags(&mask, flags));
    let Ok(signals) = signals else { return 1 };
    let _ = kept.listener.set_nonblocking(true);
    for (stream, _) in &kept.outputs.streams {
        let _ = fcntl(stream.as_raw_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
    }
    let mut clients: Vec<Client> = Vec::new();
    let mut ended = reap(kept.pid); // It may have ended before the signal was blocked.
    while ended.is_none() {
        let ready = wait(&kept, &signals, &clients, PollTimeout::NONE);
        if ready.signal {
            while let Ok(Some(_)) = signals.read_signal() {}
            ended = reap(kept.pid);
        }
        copy_outputs(&mut kept);
        serve_clients(&mut kept, &mut clients);
        if ready.listener {
            accept(&kept.listener, &mut clients);
        }
    }
    finish(kept, &signals, ended.unwrap_or(255));
    0
}

#[derive(Default)]
struct Ready {
    signal: bool,
    listener: bool,
    outputs: bool,
}

fn wait(kept: &Kept, signals: &SignalFd, clients: &[Client], timeout: PollTimeout) -> Ready {
    let mut all = vec![
        PollFd::new(signals.as_fd(), PollFlags::POLLIN),
        PollFd::new(kept.listener.as_fd(), PollFlags::POLLIN),
    ];
    let streams = kept
        .outputs
        .streams
        .iter()
        .map(|(stream, _)| stream.as_fd());
    let sockets = clients.iter().map(|client| client.stream.as_fd());
    all.extend(
        streams
            .chain(sockets)
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN)),
    );
    match poll(&mut all, timeout) {
        Ok(1..) => {}
        Ok(_) => return Ready::default(),
        Err(_) => {
            return Ready {
                signal: true,
                listener: false,
                outputs: true,
            };
        }
    }
    let is_ready = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
    Ready {
        signal: is_ready(&all[0]),
        listener: is_ready(&all[1]),
        outputs: true,
    }
}

/// The exit code of the container's first process, if it ended; reaps orphans on the way.
fn reap(init: Pid) -> Option<i32> {
    let mut code = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, status)) if pid == init => code = Some(status),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == init => {
                code = Some(128 + signal as i32);
            }
            Ok(WaitStatus::StillAlive) => return code,
            Ok(_) | Err(Errno::EINTR) => {}
            // No child at all: the container's end cannot be known any more.
            Err(_) => return code.or(Some(255)),
        }
    }
}

/// Copies what is there, and lets go of streams that ended.
fn copy_outputs(kept: &mut Kept) {
    let mut buffer = [0u8; READ_BYTES];
    let mut formatted = Vec::new();
    let clock = Clock::system();
    let log = &mut kept.log;
    kept.outputs.streams.retain_mut(|(stream, lines)| {
        let goes_on = match read(stream.as_raw_fd(), &mut buffer) {
            Ok(0) => false,
            Ok(count) => {
                lines.push(&buffer[..count], clock.now(), &mut formatted);
                true
            }
            Err(Errno::EAGAIN | Errno::EINTR) => true,
            Err(_) => false, // EIO: the last holder of the terminal closed it.
        };
        if !goes_on {
            lines.finish(clock.now(), &mut formatted);
        }
        log.write(&formatted);
        formatted.clear();
        goes_on
    });
}

fn accept(listener: &UnixListener, clients: &mut Vec<Client>) {
    while let Ok((stream, _)) = listener.accept() {
        if clients.len() < CLIENTS_MAX && stream.set_nonblocking(true).is_ok() {
            clients.push(Client {
                stream,
                line: Vec::new(),
            });
        }
    }
}

fn serve_clients(kept: &mut Kept, clients: &mut Vec<Client>) {
    clients.retain_mut(|client| {
        let mut buffer = [0u8; REQUEST_BYTES_MAX];
        match client.stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(count) => {
                client.line.extend_from_slice(&buffer[..count]);
                while let Some(end) = client.line.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = client.line.drain(..=end).collect();
                    obey(kept, String::from_utf8_lossy(&line).trim());
                }
                client.line.len() < REQUEST_BYTES_MAX
            }
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    });
}

fn obey(kept: &mut Kept, request: &str) {
    let words: Vec<&str> = request.split(' ').collect();
    match words.as_slice() {
        ["kill", signal] => {
            // The process is not reaped yet, so that its id is still its own.
            if let Ok(signal @ 1..=64) = signal.parse::<i32>() {
                send(kept.pid, signal);
            }
        }
        ["resize", width, height] if kept.outputs.has_terminal => {
            if let (Ok(ws_col), Ok(ws_row)) = (width.parse(), height.parse())
                && let Some((terminal, _)) = kept.outputs.streams.first()
            {
                let size = Winsize {
                    ws_row,
                    ws_col,
                    ws_xpixel: 0,
                    ws_ypixel: 0,
                };
                let _ = tcsetwinsize(terminal, size);
            }
        }
        ["reopen"] => kept.log.reopen(),
        _ => {}
    }
}

fn send(pid: Pid, signal: i32) {
    super::process::kill(pid, signal);
}

/// Reads the rest of the outputs, writes the record, and clears the groups away.
fn finish(mut kept: Kept, signals: &SignalFd, exit_code: i32) {
    let group = kept.record.cgroup();
    let oom_killed = kept.hierarchies.oom_kills(&group) > 0;
    let finished_at = Clock::system().now();
    kept.hierarchies.kill(&group);
    while !kept.outputs.streams.is_empty() {
        let ready = wait(&kept, signals, &[], DRAIN_TIMEOUT_MS.into());
        if ready.signal {
            while let Ok(Some(_)) = signals.read_signal() {}
            let _ = reap(kept.pid);
        }
        if !ready.outputs && !ready.signal {
            break;
        }
        copy_outputs(&mut kept);
    }
    let reason = match exit_code {
        _ if oom_killed => "OOMKilled",
        0 => "Completed",
        _ => "Error",
    };
    let exit = ExitRecord {
        exit_code,
        reason: reason.to_owned(),
        message: String::new(),
        finished_at,
    };
    let _ = record::write(Path::new(EXIT), &exit);
    kept.hierarchies.remove(&group);
}
