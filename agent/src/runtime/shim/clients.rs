//! Who is connected to the shim: the agent, with requests, and those who are attached.
//!
//! A request is a line. `attach`, with any of `stdin`, `stdout` and `stderr` behind it, turns the
//! connection into frames: what the container says from then on, and what it is told. A container
//! waits for an attached client that does not read, but not for ever.

use super::input::Input;
use bytes::{Buf, BytesMut};
use coracle_api::frames::{Channel, Decoder, Encoder};
use coracle_client::clock::Clock;
use nix::poll::PollFlags;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;
use tokio::time::Instant;

/// The agent has one connection; each one attached has another. More are turned away.
const CLIENTS_MAX: usize = 16;
/// Longest request line.
const REQUEST_BYTES_MAX: usize = 64;
/// The container waits while this much waits for an attached client.
const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// How long it waits for a client that takes nothing.
const STALL_MAX: Duration = Duration::from_secs(30);
/// How long an attached client has for the last words.
const LAST_WORDS_MAX: Duration = Duration::from_secs(5);
const READ_BYTES: usize = 16 << 10;

#[derive(Debug, Default)]
pub struct Clients(Vec<Client>);

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    /// What was received and not looked at.
    received: BytesMut,
    attached: Option<Attached>,
}

#[derive(Debug, Default)]
struct Attached {
    stdin: bool,
    stdout: bool,
    stderr: bool,
    output: BytesMut,
    /// Since when it takes nothing.
    stalled: Option<Instant>,
}

impl Attached {
    fn parse(words: &str) -> Self {
        let has = |wanted: &str| words.split(' ').any(|word| word == wanted);
        Self {
            stdin: has("stdin"),
            stdout: has("stdout"),
            stderr: has("stderr"),
            ..Self::default()
        }
    }

    fn wants(&self, channel: Channel) -> bool {
        match channel {
            Channel::Stdout => self.stdout,
            Channel::Stderr => self.stderr,
            _ => false,
        }
    }
}

impl Clients {
    pub fn accept(&mut self, listener: &UnixListener) {
        while let Ok((stream, _)) = listener.accept() {
            if self.0.len() < CLIENTS_MAX && stream.set_nonblocking(true).is_ok() {
                self.0.push(Client {
                    stream,
                    received: BytesMut::new(),
                    attached: None,
                });
            }
        }
    }

    /// What to wait for at each.
    pub fn waits(&self, input: &Input) -> Vec<(BorrowedFd<'_>, PollFlags)> {
        let wait = |client: &'_ Client| {
            let mut flags = PollFlags::empty();
            match &client.attached {
                Some(attached) => {
                    flags.set(PollFlags::POLLOUT, !attached.output.is_empty());
                    flags.set(PollFlags::POLLIN, !attached.stdin || input.has_room());
                }
                None => flags = PollFlags::POLLIN,
            }
            flags
        };
        let all = self.0.iter();
        let all = all.map(|client| (client.stream.as_fd(), wait(client)));
        // One of which nothing is wanted would wake us again and again when it is gone.
        all.filter(|(_, flags)| !flags.is_empty()).collect()
    }

    /// False while the container has to wait for somebody to read.
    pub fn have_room(&self) -> bool {
        let mut attached = self.0.iter().filter_map(|client| client.attached.as_ref());
        attached.all(|one| one.output.len() < OUTPUT_BYTES_MAX)
    }

    /// How long a wait may last until somebody has taken nothing for too long.
    pub fn patience(&self) -> Option<Duration> {
        let now = Clock::system().monotonic();
        let stalled = self
            .0
            .iter()
            .filter_map(|one| one.attached.as_ref()?.stalled);
        stalled
            .map(|since| (since + STALL_MAX).saturating_duration_since(now))
            .min()
    }

    /// What the container said.
    pub fn tell(&mut self, channel: Channel, bytes: &[u8]) {
        for client in &mut self.0 {
            if let Some(attached) = &mut client.attached
                && attached.wants(channel)
            {
                Encoder.encode(channel, bytes, &mut attached.output);
            }
        }
    }

    /// Reads, obeys and writes, and lets go of who is gone. `obey` gets the requests.
    pub fn serve(&mut self, input: &mut Input, mut obey: impl FnMut(&str)) {
        self.0.retain_mut(|client| {
            let stays = client.read(input, &mut obey) && client.write();
            if !stays && client.attached.as_ref().is_some_and(|one| one.stdin) {
                input.let_go();
            }
            stays
        });
    }

    /// The container has ended: whoever is attached gets the rest, the others learn it at once.
    pub fn finish(self) {
        let (attached, others): (Vec<_>, Vec<_>) =
            self.0.into_iter().partition(|one| one.attached.is_some());
        drop(others);
        for mut client in attached {
            let Some(attached) = client.attached else {
                continue;
            };
            let written = client
                .stream
                .set_nonblocking(false)
                .and_then(|()| client.stream.set_write_timeout(Some(LAST_WORDS_MAX)))
                .and_then(|()| client.stream.write_all(&attached.output));
            // Who does not take it does not get it.
            drop(written);
        }
    }
}

impl Client {
    /// False when it is gone or says what nobody understands.
    fn read(&mut self, input: &mut Input, obey: &mut impl FnMut(&str)) -> bool {
        let mut buffer = [0u8; READ_BYTES];
        loop {
            if !self.understand(input, obey) {
                return false;
            }
            let is_full = match &self.attached {
                Some(attached) => attached.stdin && !input.has_room(),
                None => self.received.len() >= REQUEST_BYTES_MAX,
            };
            if is_full {
                return self.attached.is_some();
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }

    /// All that was received in full.
    fn understand(&mut self, input: &mut Input, obey: &mut impl FnMut(&str)) -> bool {
        while self.attached.is_none() {
            let Some(end) = self.received.iter().position(|byte| *byte == b'\n') else {
                return true;
            };
            let line = self.received.split_to(end);
            self.received.advance(1);
            let line = String::from_utf8_lossy(&line);
            match line.trim().strip_prefix("attach") {
                Some(words) => self.attached = Some(Attached::parse(words)),
                None => obey(line.trim()),
            }
        }
        let takes_input = self.attached.as_ref().is_some_and(|one| one.stdin);
        loop {
            match Decoder.decode(&mut self.received) {
                Ok(Some(frame)) if !takes_input => drop(frame),
                Ok(Some(frame)) => match frame.channel {
                    Channel::Stdin => input.push(&frame.payload),
                    Channel::Close => input.let_go(),
                    _ => {}
                },
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    fn write(&mut self) -> bool {
        let Some(attached) = &mut self.attached else {
            return true;
        };
        while !attached.output.is_empty() {
            match self.stream.write(&attached.output) {
                Ok(0) => return false,
                Ok(count) => {
                    attached.output.advance(count);
                    attached.stalled = None;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let now = Clock::system().monotonic();
                    let since = *attached.stalled.get_or_insert(now);
                    return now.saturating_duration_since(since) < STALL_MAX;
                }
                Err(_) => return false,
            }
        }
        true
    }
}
