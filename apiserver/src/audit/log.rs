//! The audit log's file: lines on a bounded queue, written by one thread, rotated by size.
//!
//! A line for which there is no room is dropped and counted: a slow disk slows nobody down.

use crate::config::Clock;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

mod rotate; // Old files: their names, and which of them go.

/// Events that wait for the disk: some seconds of a busy server.
const LINES_MAX: usize = 8192;
/// And the memory that they may take.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// What is written at once.
const BATCH_BYTES: usize = 256 * 1024;
const MEGABYTE: u64 = 1024 * 1024;

/// Where the log goes, and how much of it is kept. 0 is without bound, as upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// Standard output when absent.
    pub path: Option<PathBuf>,
    pub age_days_max: u32,
    pub backups_max: u32,
    pub megabytes_max: u32,
}

#[derive(Debug)]
pub struct Log {
    /// Taken when the log is closed.
    sender: Option<SyncSender<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
pub struct Counts {
    queued_bytes: AtomicUsize,
    pub dropped: AtomicU64,
    pub failed: AtomicU64,
}

impl Log {
    pub fn open(settings: LogSettings, clock: Clock) -> io::Result<Self> {
        let output = Output::open(settings, clock)?;
        let counts = Arc::<Counts>::default();
        let (sender, receiver) = sync_channel(LINES_MAX);
        let own = Arc::clone(&counts);
        let thread = std::thread::Builder::new()
            .name("audit-log".to_owned())
            .spawn(move || run(output, &receiver, &own))?;
        Ok(Self {
            sender: Some(sender),
            thread: Some(thread),
            counts,
        })
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Queues a line, which ends in a newline. Never waits.
    pub fn write(&self, line: Vec<u8>) {
        let Some(sender) = &self.sender else { return };
        let length = line.len();
        let queued = self
            .counts
            .queued_bytes
            .fetch_add(length, Ordering::Relaxed);
        if queued + length > BYTES_MAX || sender.try_send(line).is_err() {
            self.counts
                .queued_bytes
                .fetch_sub(length, Ordering::Relaxed);
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Log {
    /// What is queued is still written.
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn run(mut output: Output, receiver: &Receiver<Vec<u8>>, counts: &Counts) {
    let mut batch = Vec::new();
    let mut is_failing = false;
    while let Ok(first) = receiver.recv() {
        batch.clear();
        batch.extend_from_slice(&first);
        let mut lines = 1;
        while batch.len() < BATCH_BYTES {
            let Ok(next) = receiver.try_recv() else { break };
            batch.extend_from_slice(&next);
            lines += 1;
        }
        counts
            .queued_bytes
            .fetch_sub(batch.len(), Ordering::Relaxed);
        match output.write(&batch) {
            Ok(()) => is_failing = false,
            Err(error) => {
                counts.failed.fetch_add(lines, Ordering::Relaxed);
                // Once, and not for each line of a full disk.
                if !is_failing {
                    tracing::error!(%error, "the audit log cannot be written");
                }
                is_failing = true;
            }
        }
    }
}

struct Output {
    settings: LogSettings,
    clock: Clock,
    file: Option<File>,
    size: u64,
}

impl Output {
    fn open(settings: LogSettings, clock: Clock) -> io::Result<Self> {
        let mut output = Self {
            settings,
            clock,
            file: None,
            size: 0,
        };
        if let Some(path) = output.settings.path.clone() {
            output.open_file(&path)?;
        }
        Ok(output)
    }

    /// Mode 0600: bodies of requests may be in it.
    fn open_file(&mut self, path: &Path) -> io::Result<()> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).mode(0o600).open(path)?;
        self.size = file.metadata()?.len();
        self.file = Some(file);
        Ok(())
    }

    fn write(&mut self, batch: &[u8]) -> io::Result<()> {
        let Some(path) = self.settings.path.clone() else {
            let mut out = io::stdout().lock();
            out.write_all(batch)?;
            return out.flush();
        };
        let most = u64::from(self.settings.megabytes_max) * MEGABYTE;
        let is_full = most > 0 && self.size > 0 && self.size + batch.len() as u64 > most;
        if is_full || self.file.is_none() {
            self.file = None;
            if is_full {
                rotate::rotate(&path, &self.settings, (self.clock)())?;
            }
            self.open_file(&path)?;
        }
        if let Some(file) = &mut self.file {
            file.write_all(batch)?;
            self.size += batch.len() as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
