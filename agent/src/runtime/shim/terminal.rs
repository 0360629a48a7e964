//! A terminal's file descriptor, handed over a socket by whoever opened it inside the container.

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// Reads one message; its text says which terminal it is and is of no use here.
pub fn receive(socket: impl AsFd) -> io::Result<OwnedFd> {
    let mut text = [0u8; 256];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut text)];
    recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut received) = message
            && let Some(terminal) = received.next()
        {
            return Ok(terminal);
        }
    }
    Err(io::Error::other("no terminal was sent"))
}
