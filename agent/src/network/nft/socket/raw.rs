//! The descriptor, and its buffers.
#![allow(unsafe_code)] // The socket lends its descriptor as a number; it outlives what borrows it.

use nix::sys::socket::{setsockopt, sockopt};
use rtnetlink::sys::{AsyncSocket, TokioSocket, protocols::NETLINK_NETFILTER};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The socket, and the port by which the kernel knows it.
pub fn open() -> io::Result<(TokioSocket, u32)> {
    let mut socket = TokioSocket::new(NETLINK_NETFILTER)?;
    let address = socket.socket_mut().bind_auto()?;
    Ok((socket, address.port_number()))
}

/// Room for what is sent as one, beyond what is usual.
pub fn allow_sending(socket: &TokioSocket, bytes: usize) -> io::Result<()> {
    setsockopt(&borrowed(socket), sockopt::SndBufForce, &bytes).map_err(io::Error::from)
}

/// Room for what waits to be read. Without the right to more than usual it is the usual.
pub fn allow_receiving(socket: &TokioSocket, bytes: usize) {
    if let Err(error) = setsockopt(&borrowed(socket), sockopt::RcvBufForce, &bytes) {
        tracing::debug!(%error, "answers of nf_tables have the usual room");
    }
}

/// Words about what the socket of this port did are not kept for this one. The words of a commit
/// come together, so the first header is that of all.
pub fn ignore(socket: &TokioSocket, port: u32) -> io::Result<()> {
    const PORT_OFFSET: u32 = 12;
    let statement = |code: u32, jt, k| libc::sock_filter {
        code: u16::try_from(code).expect("a code of classic BPF"),
        jt,
        jf: 0,
        k,
    };
    // What is loaded is read as big-endian.
    let loaded = u32::from_be_bytes(port.to_ne_bytes());
    let mut program = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, PORT_OFFSET),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, loaded),
        statement(libc::BPF_RET | libc::BPF_K, 0, u32::MAX),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0),
    ];
    let program = libc::sock_fprog {
        len: 4,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the program, which lives until then.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            std::ptr::from_ref(&program).cast(),
            size_of_val(&program) as libc::socklen_t,
        )
    };
    if set == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn borrowed(socket: &TokioSocket) -> BorrowedFd<'_> {
    // SAFETY: the descriptor is the socket's, which is borrowed for as long.
    unsafe { BorrowedFd::borrow_raw(socket.as_raw_fd()) }
}
