//! The container's standard input, fed by whoever is attached.

use bytes::{Buf, BytesMut};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// What a container that does not read makes us hold; whoever sends it waits then.
const PENDING_BYTES_MAX: usize = 64 << 10;

/// Our end of it, until it is closed. Held open, so that it does not end by itself.
#[derive(Debug, Default)]
pub struct Input {
    stream: Option<OwnedFd>,
    pending: BytesMut,
    /// Ends with the first who feeds it.
    is_once: bool,
    is_ending: bool,
}

impl Input {
    /// A pipe, or the terminal itself, which has no end.
    pub fn new(stream: OwnedFd, is_once: bool) -> Self {
        // A stream that cannot be set so blocks the shim only while the container does not read.
        let _ = fcntl(stream.as_raw_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
        Self {
            stream: Some(stream),
            pending: BytesMut::new(),
            is_once,
            is_ending: false,
        }
    }

    pub fn has_room(&self) -> bool {
        self.pending.len() < PENDING_BYTES_MAX
    }

    /// What to wait for, when there is something to write.
    pub fn waits(&self) -> Option<BorrowedFd<'_>> {
        let stream = self.stream.as_ref()?;
        (!self.pending.is_empty()).then(|| stream.as_fd())
    }

    /// Dropped when the input is closed.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.stream.is_some() && !self.is_ending {
            self.pending.extend_from_slice(bytes);
            self.write();
        }
    }

    /// Whoever fed it will not go on.
    pub fn let_go(&mut self) {
        self.is_ending |= self.is_once;
        self.write();
    }

    /// Writes as much as the container takes now.
    pub fn write(&mut self) {
        let Some(stream) = &self.stream else {
            return;
        };
        while !self.pending.is_empty() {
            match write(stream, &self.pending) {
                Ok(count) => self.pending.advance(count),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return,
                // The container closed it.
                Err(_) => {
                    self.pending.clear();
                    self.is_ending = true;
                }
            }
        }
        if self.is_ending {
            self.stream = None;
        }
    }
}
