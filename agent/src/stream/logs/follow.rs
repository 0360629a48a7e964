//! Waits until a log file has grown, was replaced, or its container has ended. No polling: the
//! kernel tells of the file, the runtime of the container.

#![allow(unsafe_code)] // Registering a descriptor with the event loop is a promise to keep it.

use crate::runtime::{ContainerEvent, ContainerId, EventKind};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use tokio::io::unix::AsyncFd;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Events read at one time; the rest is read the next time.
const EVENT_BYTES: usize = 4096;

/// The end of a container.
#[derive(Debug)]
pub struct End {
    events: broadcast::Receiver<ContainerEvent>,
    id: ContainerId,
    is_running: bool,
}

impl End {
    pub fn new(
        events: broadcast::Receiver<ContainerEvent>,
        id: ContainerId,
        is_running: bool,
    ) -> Self {
        Self {
            events,
            id,
            is_running,
        }
    }

    pub fn has_come(&self) -> bool {
        !self.is_running
    }

    /// Waits for it. When the receiver lags, it is taken to have come.
    pub async fn come(&mut self) {
        while self.is_running {
            match self.events.recv().await {
                Ok(event) if event.container == self.id => {
                    self.is_running = !matches!(event.kind, EventKind::Exited { .. });
                }
                Ok(_) => {}
                Err(RecvError::Lagged(_) | RecvError::Closed) => self.is_running = false,
            }
        }
    }
}

/// Watches one file and the directory it is in.
#[derive(Debug)]
pub struct Watch(AsyncFd<OwnedFd>);

impl Watch {
    pub fn open(path: &Path) -> io::Result<Self> {
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        inotify::add_watch(&watch, path, WatchFlags::MODIFY | WatchFlags::MOVE_SELF)?;
        if let Some(parent) = path.parent() {
            inotify::add_watch(&watch, parent, WatchFlags::CREATE | WatchFlags::MOVED_TO)?;
        }
        // SAFETY: an `OwnedFd` gives the same descriptor each time and closes it when dropped,
        // after `AsyncFd` has let go of it.
        Ok(Self(unsafe { AsyncFd::register(watch)? }))
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
