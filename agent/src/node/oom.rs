//! Tells of processes that the kernel killed because the whole machine was out of memory.
//!
//! Reads the kernel's log from now on, where that can be read; sleeps until there is more of it.
//! Kills within the bounds of a container are none of this: the container says so itself.

#![allow(unsafe_code)] // Tokio cannot know that a descriptor stays open; we do.

use coracle_client::events::{EventType, Recorder};
use k8s_openapi::api::core::v1::ObjectReference;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio_util::sync::CancellationToken;

const KERNEL_LOG: &str = "/dev/kmsg";
/// The kernel gives one record at a time, and none is longer.
const RECORD_BYTES_MAX: usize = 8192;

pub async fn watch(recorder: Recorder, node: ObjectReference, stop: CancellationToken) {
    let log = match open() {
        Ok(log) => log,
        Err(error) => {
            tracing::debug!(%error, "the kernel's log is not readable; SystemOOM is not told");
            return;
        }
    };
    let mut record = vec![0; RECORD_BYTES_MAX];
    loop {
        let read = log.async_io(Interest::READABLE, |mut log| log.read(&mut record));
        let length = tokio::select! {
            () = stop.cancelled() => return,
            read = read => match read {
                Ok(length) => length,
                // Records were lost before they were read; the next one is there.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => continue,
                Err(error) => {
                    tracing::warn!(%error, "cannot read the kernel's log any more");
                    return;
                }
            },
        };
        let text = String::from_utf8_lossy(&record[..length]);
        if let Some(victim) = victim(&text) {
            let message = format!("System OOM encountered, victim process: {victim}");
            recorder.event(&node, EventType::Warning, "SystemOOM", message);
        }
    }
}

fn open() -> io::Result<AsyncFd<File>> {
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NONBLOCK);
    let mut log = options.open(KERNEL_LOG)?;
    log.seek(SeekFrom::End(0))?;
    // SAFETY: a File is one open descriptor until the AsyncFd that owns it is dropped.
    let registered = unsafe { AsyncFd::register_with_interest(log, Interest::READABLE) };
    Ok(registered?)
}

/// `name, pid: number` of a record that tells of such a kill. Before the text are the priority and
/// the time, up to a semicolon.
fn victim(record: &str) -> Option<String> {
    let (_, text) = record.split_once(';')?;
    let text = text.lines().next()?;
    let kills = [
        "Out of memory: Killed process ",
        "Out of memory: Kill process ",
    ];
    let killed = kills.iter().find_map(|kill| text.strip_prefix(kill))?;
    let (pid, rest) = killed.split_once(' ')?;
    let name = rest.strip_prefix('(')?;
    let (name, _) = name.rsplit_once(')')?;
    pid.parse::<u32>().ok()?;
    Some(format!("{name}, pid: {pid}"))
}

#[cfg(test)]
mod tests;
