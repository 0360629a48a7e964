//! The tun device: a file of which each read and each write is a packet. The link outlives the
//! file, so that routes by it stay.
#![allow(unsafe_code)] // ioctl(2) has no safe form, and registering a descriptor is a promise.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

const PATH: &str = "/dev/net/tun";

// Of linux/if_tun.h; the first takes an ifreq, though its number says otherwise.
nix::ioctl_write_ptr_bad!(
    set_link,
    nix::request_code_write!(b'T', 202, size_of::<libc::c_int>()),
    libc::ifreq
);
nix::ioctl_write_int_bad!(
    set_lasting,
    nix::request_code_write!(b'T', 203, size_of::<libc::c_int>())
);

#[derive(Debug)]
pub struct Tun(File);

impl Tun {
    /// Makes the link, or takes up the one of this name that nobody has.
    pub fn open(name: &str) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(PATH)
            .map_err(|error| {
                let text = format!("the kernel has no WireGuard, and {PATH}: {error}");
                io::Error::new(error.kind(), text)
            })?;
        let flags = libc::IFF_TUN | libc::IFF_NO_PI;
        let mut request = libc::ifreq {
            ifr_name: [0; libc::IFNAMSIZ],
            ifr_ifru: libc::__c_anonymous_ifr_ifru {
                ifru_flags: libc::c_short::try_from(flags).expect("the flags are small"),
            },
        };
        let room = &mut request.ifr_name[..libc::IFNAMSIZ - 1];
        for (at, byte) in room.iter_mut().zip(name.bytes()) {
            *at = libc::c_char::from_ne_bytes([byte]);
        }
        // SAFETY: the kernel copies the request.
        unsafe { set_link(file.as_raw_fd(), &raw const request) }?;
        // SAFETY: a number is handed over.
        unsafe { set_lasting(file.as_raw_fd(), 1) }?;
        Ok(Self(file))
    }

    pub fn registered(self) -> io::Result<AsyncFd<Self>> {
        // SAFETY: it is one open descriptor until the AsyncFd that owns it is dropped.
        let registered = unsafe { AsyncFd::register_with_interest(self, Interest::READABLE) };
        Ok(registered?)
    }

    pub fn read(&self, packet: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(packet)
    }

    pub fn write(&self, packet: &[u8]) -> io::Result<usize> {
        (&self.0).write(packet)
    }
}

impl AsRawFd for Tun {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
