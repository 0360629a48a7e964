//! Keeps a running container: log, requests of the agent, and the end.
//!
//! One poll loop that sleeps when nothing happens. Requests are lines on the socket `s`:
//! `kill SIGNAL`, `resize WIDTH HEIGHT`, `reopen`, `attach STREAMS`. A connection that ends tells
//! the agent that the container did; its exit record is on disk by then.

use super::clients::Clients;
use super::input::Input;
use super::log::{Lines, Log};
use crate::runtime::cgroups::Hierarchies;
use crate::runtime::record::{self, ContainerRecord, EXIT, ExitRecord};
use coracle_api::frames::Channel;
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
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;

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
    streams: Vec<Output>,
    input: Input,
    has_terminal: bool,
}

#[derive(Debug)]
struct Output {
    stream: OwnedFd,
    channel: Channel,
    lines: Lines,
}

impl Output {
    fn new(stream: OwnedFd, channel: Channel) -> Self {
        let name = match channel {
            Channel::Stderr => "stderr",
            _ => "stdout",
        };
        Self {
            stream,
            channel,
            lines: Lines::of(name),
        }
    }
}

impl Outputs {
    pub fn pipes(input: Input, stdout: OwnedFd, stderr: OwnedFd) -> Self {
        let streams = vec![
            Output::new(stdout, Channel::Stdout),
            Output::new(stderr, Channel::Stderr),
        ];
        Self {
            streams,
            input,
            has_terminal: false,
        }
    }

    pub fn terminal(terminal: OwnedFd, input: Input) -> Self {
        Self {
            streams: vec![Output::new(terminal, Channel::Stdout)],
            input,
            has_terminal: true,
        }
    }
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
    for output in &kept.outputs.streams {
        let stream = output.stream.as_raw_fd();
        let _ = fcntl(stream, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
    }
    let mut clients = Clients::default();
    let mut ended = reap(kept.pid); // It may have ended before the signal was blocked.
    while ended.is_none() {
        let ready = wait(&kept, &signals, &clients, patience(&clients));
        if ready.signal {
            while let Ok(Some(_)) = signals.read_signal() {}
            ended = reap(kept.pid);
        }
        if clients.have_room() {
            copy_outputs(&mut kept, &mut clients);
        }
        let Kept {
            pid, outputs, log, ..
        } = &mut kept;
        outputs.input.write();
        let streams = &outputs.streams;
        let terminal = streams.first().filter(|_| outputs.has_terminal);
        clients.serve(&mut outputs.input, |request| {
            obey(*pid, terminal.map(|output| &output.stream), log, request);
        });
        if ready.listener {
            clients.accept(&kept.listener);
        }
    }
    finish(kept, clients, &signals, ended.unwrap_or(255));
    0
}

/// Rounded up, so that the time is over when the wait is.
fn patience(clients: &Clients) -> PollTimeout {
    let Some(patience) = clients.patience() else {
        return PollTimeout::NONE;
    };
    let ms = u16::try_from(patience.as_millis()).unwrap_or(u16::MAX);
    PollTimeout::from(ms.saturating_add(1))
}

#[derive(Default)]
struct Ready {
    signal: bool,
    listener: bool,
    outputs: bool,
}

fn wait(kept: &Kept, signals: &SignalFd, clients: &Clients, timeout: PollTimeout) -> Ready {
    let mut all = vec![
        PollFd::new(signals.as_fd(), PollFlags::POLLIN),
        PollFd::new(kept.listener.as_fd(), PollFlags::POLLIN),
    ];
    if clients.have_room() {
        let streams = kept.outputs.streams.iter();
        all.extend(streams.map(|one| PollFd::new(one.stream.as_fd(), PollFlags::POLLIN)));
    }
    let input = &kept.outputs.input;
    all.extend(input.waits().map(|fd| PollFd::new(fd, PollFlags::POLLOUT)));
    let waits = clients.waits(input).into_iter();
    all.extend(waits.map(|(fd, flags)| PollFd::new(fd, flags)));
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
fn copy_outputs(kept: &mut Kept, clients: &mut Clients) {
    let mut buffer = [0u8; READ_BYTES];
    let mut formatted = Vec::new();
    let clock = Clock::system();
    let log = &mut kept.log;
    kept.outputs.streams.retain_mut(|output| {
        let goes_on = match read(output.stream.as_raw_fd(), &mut buffer) {
            Ok(0) => false,
            Ok(count) => {
                let said = &buffer[..count];
                output.lines.push(said, clock.now(), &mut formatted);
                clients.tell(output.channel, said);
                true
            }
            Err(Errno::EAGAIN | Errno::EINTR) => true,
            Err(_) => false, // EIO: the last holder of the terminal closed it.
        };
        if !goes_on {
            output.lines.finish(clock.now(), &mut formatted);
        }
        log.write(&formatted);
        formatted.clear();
        goes_on
    });
}

fn obey(container: Pid, terminal: Option<&OwnedFd>, log: &mut Log, request: &str) {
    let words: Vec<&str> = request.split(' ').collect();
    match words.as_slice() {
        ["kill", signal] => {
            // The process is not reaped yet, so that its id is still its own.
            if let Ok(signal @ 1..=64) = signal.parse::<i32>() {
                super::process::kill(container, signal);
            }
        }
        ["resize", width, height] => {
            if let (Ok(ws_col), Ok(ws_row)) = (width.parse(), height.parse())
                && let Some(terminal) = terminal
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
        ["reopen"] => log.reopen(),
        _ => {}
    }
}

/// Reads the rest of the outputs, writes the record, and clears the groups away.
fn finish(mut kept: Kept, mut clients: Clients, signals: &SignalFd, exit_code: i32) {
    let group = kept.record.cgroup();
    let oom_killed = kept.hierarchies.oom_kills(&group) > 0;
    let finished_at = Clock::system().now();
    kept.hierarchies.kill(&group);
    while !kept.outputs.streams.is_empty() {
        let nobody = Clients::default();
        let ready = wait(&kept, signals, &nobody, DRAIN_TIMEOUT_MS.into());
        if ready.signal {
            while let Ok(Some(_)) = signals.read_signal() {}
            let _ = reap(kept.pid);
        }
        if !ready.outputs && !ready.signal {
            break;
        }
        copy_outputs(&mut kept, &mut clients);
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
    clients.finish();
}
