//! The container's log file, in the format of the Container Runtime Interface:
//! `2026-01-02T03:04:05.000000006Z stdout F text`, with `P` for a piece of a line.

use jiff::Timestamp;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Longer lines are cut into pieces, as containerd does by default.
pub const LINE_BYTES_MAX: usize = 16 << 10;

#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            file: open(path)?,
        })
    }

    /// After a rotation moved the old file away.
    pub fn reopen(&mut self) {
        if let Ok(file) = open(&self.path) {
            self.file = file;
        }
    }

    /// A full disk loses lines; it never stops the container.
    pub fn write(&mut self, formatted: &[u8]) {
        let _ = self.file.write_all(formatted);
    }
}

fn open(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o640)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
}

/// Cuts one stream into log lines.
#[derive(Debug)]
pub struct Lines {
    stream: &'static str,
    /// The line so far, without its end.
    rest: Vec<u8>,
}

impl Lines {
    pub fn of(stream: &'static str) -> Self {
        Self {
            stream,
            rest: Vec::new(),
        }
    }

    /// Formats what is complete, each time a whole line or a whole piece.
    pub fn push(&mut self, mut bytes: &[u8], now: Timestamp, out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            let room = LINE_BYTES_MAX - self.rest.len();
            let end = bytes.iter().take(room + 1).position(|byte| *byte == b'\n');
            match end {
                Some(end) => {
                    self.line(now, 'F', &bytes[..end], out);
                    bytes = &bytes[end + 1..];
                }
                // A full piece whose line ends right behind it is a whole line: look further.
                None if bytes.len() > room => {
                    self.line(now, 'P', &bytes[..room], out);
                    bytes = &bytes[room..];
                }
                None => {
                    self.rest.extend_from_slice(bytes);
                    bytes = &[];
                }
            }
        }
    }

    /// The last line may lack its end: a piece, as containerd has it, so that nobody who reads the
    /// log adds an end that the container did not write.
    pub fn finish(&mut self, now: Timestamp, out: &mut Vec<u8>) {
        if !self.rest.is_empty() {
            self.line(now, 'P', &[], out);
        }
    }

    fn line(&mut self, now: Timestamp, tag: char, end: &[u8], out: &mut Vec<u8>) {
        // Writing to memory cannot fail.
        let _ = write!(out, "{now:.9} {} {tag} ", self.stream);
        out.extend_from_slice(&self.rest);
        out.extend_from_slice(end);
        out.push(b'\n');
        self.rest.clear();
    }
}

#[cfg(test)]
mod tests;
