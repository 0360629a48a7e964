//! Of a file that is mapped, only the pages that are touched.
//!
//! At a touch Linux maps what it has of the sixteen pages around it, and holds all of them for used.
//! A process that runs little of a large file is three times its size then, and where memory is short
//! the kernel keeps what nobody needs. There is no setting of a process for that. But the kernel maps
//! single pages where a user fault descriptor follows writes without waiting for anyone
//! (`UFFD_FEATURE_WP_ASYNC`, Linux 6.7): none are asked for here, and none come, as nobody writes.
#![allow(unsafe_code)] // System calls that libc has no functions for.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

// From linux/userfaultfd.h.
const API: u64 = 0xaa;
const USER_MODE_ONLY: libc::c_int = 1;
const FEATURE_WP_ASYNC: u64 = 1 << 15;
const MODE_WP: u64 = 1 << 1;
const UFFDIO_API: libc::Ioctl = request(0x3f, size_of::<Handshake>());
const UFFDIO_REGISTER: libc::Ioctl = request(0x00, size_of::<Registration>());

/// `_IOWR(0xaa, number, size)`
#[allow(clippy::cast_possible_truncation)] // Sizes of these are below 64.
const fn request(number: u32, size: usize) -> libc::Ioctl {
    (3 << 30 | (size as u32) << 16 | 0xaa << 8 | number) as libc::Ioctl
}

#[repr(C)]
struct Handshake {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct Registration {
    start: u64,
    length: u64,
    mode: u64,
    ioctls: u64,
}

/// As long as it lives, what is registered is mapped page by page.
pub struct Touched(OwnedFd);

impl Touched {
    /// An error where the kernel is older or has no such descriptors.
    pub fn new() -> io::Result<Self> {
        let flags = libc::O_CLOEXEC | USER_MODE_ONLY;
        // SAFETY: it takes flags and gives a descriptor or an error.
        let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
        let fd = i32::try_from(fd).map_err(io::Error::other)?;
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is new and nobody else's.
        let this = Self(unsafe { OwnedFd::from_raw_fd(fd) });
        let mut handshake = Handshake {
            api: API,
            features: FEATURE_WP_ASYNC,
            ioctls: 0,
        };
        // SAFETY: the request is for this structure.
        let done = unsafe { libc::ioctl(this.0.as_raw_fd(), UFFDIO_API, &raw mut handshake) };
        result(done).map(|()| this)
    }

    /// From here on, of a mapping; what is mapped already stays.
    pub fn register(&self, start: u64, length: u64) -> io::Result<()> {
        let mut registration = Registration {
            start,
            length,
            mode: MODE_WP,
            ioctls: 0,
        };
        // SAFETY: the request is for this structure. Pages read the same, and a write to one that is
        // not protected, as none is, passes.
        let done =
            unsafe { libc::ioctl(self.0.as_raw_fd(), UFFDIO_REGISTER, &raw mut registration) };
        result(done)
    }
}

fn result(done: libc::c_int) -> io::Result<()> {
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Touched;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    const LENGTH: usize = 1 << 20;

    fn resident_kib(start: u64) -> u64 {
        let maps = procfs::process::Process::myself().unwrap().smaps().unwrap();
        let map = maps.iter().find(|map| map.address.0 == start).unwrap();
        map.extension.map["Rss"] / 1024
    }

    #[test]
    fn one_touch_maps_one_page() {
        let Ok(touched) = Touched::new() else {
            let kernel = procfs::sys::kernel::Version::current().unwrap();
            assert!((kernel.major, kernel.minor) < (6, 7), "the kernel can");
            return;
        };
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; LENGTH]).unwrap();
        // SAFETY: a mapping of its own, which nobody writes to.
        let mapped = unsafe {
            let (read, private) = (libc::PROT_READ, libc::MAP_PRIVATE);
            libc::mmap(
                std::ptr::null_mut(),
                LENGTH,
                read,
                private,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(mapped, libc::MAP_FAILED);
        let start = mapped.expose_provenance() as u64;
        touched.register(start, LENGTH as u64).unwrap();
        // SAFETY: it is within the mapping.
        let byte = unsafe { mapped.cast::<u8>().add(LENGTH / 2).read_volatile() };
        assert_eq!((byte, resident_kib(start)), (7, 4));
        drop(touched);
        // SAFETY: as above.
        let byte = unsafe { mapped.cast::<u8>().add(LENGTH / 4).read_volatile() };
        assert_eq!(byte, 7);
        assert!(resident_kib(start) >= 8);
        // SAFETY: nobody has a reference to it.
        unsafe { libc::munmap(mapped, LENGTH) };
    }
}
