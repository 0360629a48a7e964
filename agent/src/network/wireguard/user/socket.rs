//! The UDP socket. Datagrams of one size to one end leave by one call, and may come so: the kernel
//! cuts them and puts them together (UDP_SEGMENT, UDP_GRO).

use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
    sockopt,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// What may wait in the kernel: bursts of a fast link, for some milliseconds.
const WAITING_BYTES: usize = 2 << 20;

#[derive(Debug)]
pub struct Socket {
    inner: UdpSocket,
    /// This kernel, and the link that is used, can cut.
    cuts: AtomicBool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Received {
    pub from: SocketAddr,
    pub bytes: usize,
    /// All datagrams are of this size; the last may be shorter.
    pub segment: usize,
}

/// On all addresses of the family.
pub fn open(address: IpAddr, port: u16) -> io::Result<std::net::UdpSocket> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = std::net::UdpSocket::bind((any, port))?;
    socket.set_nonblocking(true)?;
    let wished = [
        setsockopt(&socket, sockopt::UdpGroSegment, &true),
        setsockopt(&socket, sockopt::RcvBufForce, &WAITING_BYTES),
        setsockopt(&socket, sockopt::SndBufForce, &WAITING_BYTES),
    ];
    for error in wished.into_iter().filter_map(Result::err) {
        tracing::debug!(%error, "the link to other nodes is slower than it could be");
    }
    Ok(socket)
}

impl Socket {
    /// Needs a tokio runtime.
    pub fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
        Ok(Self {
            inner: UdpSocket::from_std(socket)?,
            cuts: AtomicBool::new(true),
        })
    }

    pub async fn readable(&self) -> io::Result<()> {
        self.inner.readable().await
    }

    /// What is there, into the beginning of `buffer`.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        self.inner.try_io(Interest::READABLE, || {
            let mut control = nix::cmsg_space!(i32);
            let mut parts = [IoSliceMut::new(buffer)];
            let received = recvmsg::<SockaddrStorage>(
                self.inner.as_raw_fd(),
                &mut parts,
                Some(&mut control),
                MsgFlags::empty(),
            )?;
            let segment = received.cmsgs()?.find_map(|message| match message {
                ControlMessageOwned::UdpGroSegments(bytes) => usize::try_from(bytes).ok(),
                _ => None,
            });
            let from = received.address.as_ref().and_then(address);
            Ok(Received {
                from: from.ok_or(io::ErrorKind::InvalidData)?,
                bytes: received.bytes,
                segment: segment.unwrap_or(received.bytes),
            })
        })
    }

    /// Datagrams of `segment` bytes, of which the last may be shorter, as soon as there is room for
    /// them. What the network refuses is lost, as on any link.
    pub async fn send(&self, to: SocketAddr, datagrams: &[u8], segment: u16) {
        let step = usize::from(segment).max(1);
        if datagrams.len() > step && self.cuts.load(Ordering::Relaxed) {
            match self.send_when_free(to, datagrams, Some(segment)).await {
                // On one way the segments are too long: on others they may not be.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
                Err(error) if is_uncut(&error) => {
                    tracing::debug!(%error, "datagrams to other nodes are sent one by one");
                    self.cuts.store(false, Ordering::Relaxed);
                }
                _ => return,
            }
        }
        for datagram in datagrams.chunks(step) {
            let _ = self.send_when_free(to, datagram, None).await;
        }
    }

    async fn send_when_free(
        &self,
        to: SocketAddr,
        bytes: &[u8],
        segment: Option<u16>,
    ) -> io::Result<()> {
        loop {
            match self.try_send(to, bytes, segment) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.inner.writable().await?;
                }
                sent => return sent,
            }
        }
    }

    /// One datagram, or none of it.
    pub fn send_now(&self, to: SocketAddr, datagram: &[u8]) {
        let _ = self.try_send(to, datagram, None);
    }

    fn try_send(&self, to: SocketAddr, bytes: &[u8], segment: Option<u16>) -> io::Result<()> {
        self.inner.try_io(Interest::WRITABLE, || {
            let cut = segment.as_ref().map(ControlMessage::UdpGsoSegments);
            let to = SockaddrStorage::from(to);
            sendmsg(
                self.inner.as_raw_fd(),
                &[IoSlice::new(bytes)],
                cut.as_slice(),
                MsgFlags::empty(),
                Some(&to),
            )?;
            Ok(())
        })
    }
}

/// Not of the network, but of the kernel or the link's driver.
fn is_uncut(error: &io::Error) -> bool {
    [libc::EIO, libc::EOPNOTSUPP].contains(&error.raw_os_error().unwrap_or_default())
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(v4) = storage.as_sockaddr_in() {
        return Some(SocketAddr::from((v4.ip(), v4.port())));
    }
    let v6 = storage.as_sockaddr_in6()?;
    Some(SocketAddr::V6((*v6).into()))
}
