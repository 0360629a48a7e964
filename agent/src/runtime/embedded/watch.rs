//! The connection to a container's shim: its end is the container's.

use super::super::record::{self, EXIT, ExitRecord};
use super::Inner;
use super::container::Container;
use coracle_client::clock::Clock;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Arc, Weak};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;

/// As containerd reports a container whose shim is gone.
const LOST_CODE: i32 = 255;

/// Sockets' paths are limited to 108 bytes, data directories are not.
pub fn short_path(directory: &File, name: &str) -> String {
    format!("/proc/self/fd/{}/{name}", directory.as_raw_fd())
}

pub fn connect(directory: &Path) -> io::Result<UnixStream> {
    let directory = File::open(directory)?;
    let path = short_path(&directory, record::SOCKET);
    let stream = std::os::unix::net::UnixStream::connect(path)?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

impl Inner {
    /// Connects to the shim of a container that was started, and watches it from then on.
    pub fn attach(self: &Arc<Self>, container: &Arc<Container>) {
        match connect(&container.directory) {
            Ok(stream) => {
                let (reads, writes) = stream.into_split();
                // No one else knows this container's requests yet, or they wait for this.
                if let Ok(mut requests) = container.requests.try_lock() {
                    *requests = Some(writes);
                }
                let (inner, container) = (Arc::downgrade(self), container.clone());
                tokio::spawn(watch(inner, container, reads, self.stop.clone()));
            }
            Err(_) => self.settle(container), // It has ended already.
        }
    }

    /// The shim is gone: what it left says how the container ended.
    fn settle(&self, container: &Container) {
        match record::read::<ExitRecord>(&container.directory.join(EXIT)) {
            Ok(exit) => self.ended(container, exit),
            Err(_) => {
                let group = container.record.cgroup();
                self.hierarchies.kill(&group);
                self.hierarchies.remove(&group);
                let exit = ExitRecord {
                    exit_code: LOST_CODE,
                    reason: "ContainerStatusUnknown".to_owned(),
                    message: "The container's shim ended before the container did".to_owned(),
                    finished_at: Clock::system().now(),
                };
                self.end(container, exit);
            }
        }
    }
}

async fn watch(
    inner: Weak<Inner>,
    container: Arc<Container>,
    mut shim: OwnedReadHalf,
    stop: tokio_util::sync::CancellationToken,
) {
    let mut byte = [0u8; 1];
    loop {
        let read = tokio::select! {
            read = shim.read(&mut byte) => read,
            () = stop.cancelled() => return,
        };
        if matches!(read, Ok(0) | Err(_)) {
            break;
        }
    }
    *container.requests.lock().await = None;
    if let Some(inner) = inner.upgrade() {
        inner.settle(&container);
    }
}
