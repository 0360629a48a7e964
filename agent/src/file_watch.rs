//! Waits for changes of files. The kernel tells; nothing polls.

#![allow(unsafe_code)] // Registering a descriptor with the event loop is a promise to keep it.

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use tokio::io::unix::AsyncFd;

/// Events read at one time; the rest is read the next time.
const EVENT_BYTES: usize = 4096;

/// Watches files and directories, whatever becomes of their names later.
#[derive(Debug)]
pub struct FileWatch(AsyncFd<OwnedFd>);

impl FileWatch {
    pub fn open(watched: &[(&Path, WatchFlags)]) -> io::Result<Self> {
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        for (path, flags) in watched {
            inotify::add_watch(&watch, *path, *flags)?;
        }
        // SAFETY: an `OwnedFd` gives the same descriptor each time and closes it when dropped,
        // after `AsyncFd` has let go of it.
        Ok(Self(unsafe { AsyncFd::register(watch)? }))
    }

    /// Watches for files of a directory that come, go or were written, and for its own end.
    pub fn of_directory(path: &Path) -> io::Result<Self> {
        let flags = WatchFlags::CREATE
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        Self::open(&[(path, flags)])
    }

    /// Ends when something happened since the last call.
    pub async fn changed(&self) -> io::Result<()> {
        let mut ready = self.0.readable().await?;
        let mut buffer = [MaybeUninit::<u8>::uninit(); EVENT_BYTES];
        loop {
            match rustix::io::read(self.0.get_ref(), &mut buffer) {
                Ok(_) => {}
                Err(rustix::io::Errno::AGAIN) => {
                    ready.clear_ready();
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
