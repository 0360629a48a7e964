//! Waits until a log file has grown, was replaced, or its container has ended. No polling: the
//! kernel tells of the file, the runtime of the container.

use crate::file_watch::FileWatch;
use crate::runtime::{ContainerEvent, ContainerId, EventKind};
use rustix::fs::inotify::WatchFlags;
use std::io;
use std::path::Path;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

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
pub fn watch(path: &Path) -> io::Result<FileWatch> {
    let mut watched = vec![(path, WatchFlags::MODIFY | WatchFlags::MOVE_SELF)];
    let parent = path
        .parent()
        .map(|parent| (parent, WatchFlags::CREATE | WatchFlags::MOVED_TO));
    watched.extend(parent);
    FileWatch::open(&watched)
}
