//! Datagrams that are sent as one: all to one end, all of one size but for a shorter last one.

use super::socket::Socket;
use std::net::SocketAddr;

/// What the kernel takes at once, in datagrams and in bytes.
const DATAGRAMS_MAX: usize = 64;
const BYTES_MAX: usize = 65_000;

#[derive(Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    used: usize,
    to: Option<SocketAddr>,
    /// Of the first datagram.
    segment: usize,
    count: usize,
    /// A shorter one was the last.
    is_closed: bool,
}

impl Batch {
    /// `datagram_bytes_max` is the room that there always is for another one.
    pub fn new(datagram_bytes_max: usize) -> Self {
        Self {
            bytes: vec![0; BYTES_MAX + datagram_bytes_max],
            used: 0,
            to: None,
            segment: 0,
            count: 0,
            is_closed: false,
        }
    }

    /// Where the next datagram is to be written, before it is said what it is.
    pub fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[self.used..]
    }

    /// Whether a datagram of so many bytes may be the next.
    pub fn fits(&self, to: SocketAddr, bytes: usize) -> bool {
        let Some(of) = self.to else { return true };
        of == to
            && bytes <= self.segment
            && !self.is_closed
            && self.count < DATAGRAMS_MAX
            && self.used + bytes <= BYTES_MAX
    }

    /// The datagram in the room belongs to it.
    pub fn push(&mut self, to: SocketAddr, bytes: usize) {
        debug_assert!(self.fits(to, bytes));
        if self.to.is_none() {
            self.to = Some(to);
            self.segment = bytes;
        }
        self.is_closed = bytes < self.segment;
        self.used += bytes;
        self.count += 1;
    }

    /// Sends what belongs to it, and makes the datagram in the room the first of the next.
    pub async fn send_before(&mut self, bytes: usize, socket: &Socket) {
        let start = self.used;
        self.send(socket).await;
        self.bytes.copy_within(start..start + bytes, 0);
    }

    pub async fn send(&mut self, socket: &Socket) {
        if let Some(to) = self.to.take() {
            // A datagram of this protocol is never longer.
            let segment = u16::try_from(self.segment).unwrap_or(u16::MAX);
            socket.send(to, &self.bytes[..self.used], segment).await;
        }
        self.used = 0;
        self.count = 0;
        self.is_closed = false;
    }

    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests;
