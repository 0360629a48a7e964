//! Sends a log file, and what is added to it, as its options ask.

use super::Options;
use super::follow::{self, End};
use super::{line, tail};
use bytes::{Bytes, BytesMut};
use std::io::{self, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncSeekExt};
use tokio::sync::mpsc;

/// Read from the file at one time.
const BLOCK_BYTES: usize = 64 * 1024;
/// The runtime cuts lines far below this; what is longer is no log.
const LINE_BYTES_MAX: usize = 1 << 20;

struct Sender<'a> {
    options: &'a Options,
    chunks: &'a mpsc::Sender<Bytes>,
    left_bytes: Option<u64>,
    /// The beginning of a line whose end is not read yet.
    rest: BytesMut,
    /// The last content sent had no end of line: the next one goes on there.
    is_inside_line: bool,
}

/// Ends with the log, with the limit, when nobody reads any more, or, when it follows, with the
/// container.
pub async fn send(
    path: &Path,
    options: &Options,
    mut end: End,
    chunks: &mpsc::Sender<Bytes>,
) -> io::Result<()> {
    // Watched before it is read, so that nothing is missed in between.
    let mut watch = options.follow.then(|| follow::watch(path)).transpose()?;
    let mut file = File::open(path).await?;
    let size = file.metadata().await?.len();
    let start = match options.tail_lines {
        Some(lines) => tail::offset(&mut file, lines).await?,
        None => 0,
    };
    file.seek(SeekFrom::Start(start)).await?;
    let mut sender = Sender {
        options,
        chunks,
        left_bytes: options.limit_bytes,
        rest: BytesMut::new(),
        is_inside_line: false,
    };
    if !options.follow {
        // A container that writes as fast as this reads would never let it end.
        let mut present = file.take(size.saturating_sub(start));
        sender.drain(&mut present).await?;
        return Ok(());
    }
    loop {
        // Asked before reading: what was written before the end is read after it.
        let is_last = end.has_come();
        if !sender.drain(&mut file).await? {
            return Ok(());
        }
        let Some(known) = &watch else {
            return Ok(());
        };
        if let Some(next) = replaced(path, &file).await? {
            watch = Some(follow::watch(path)?);
            sender.drain(&mut file).await?;
            file = next;
            continue;
        }
        if is_last {
            return Ok(());
        }
        tokio::select! {
            changed = known.changed() => changed?,
            () = end.come() => {}
            () = chunks.closed() => return Ok(()),
        }
    }
}

/// The file that has taken the place of the one that is open, after a rotation.
async fn replaced(path: &Path, open: &File) -> io::Result<Option<File>> {
    let now = match tokio::fs::metadata(path).await {
        Ok(now) => now,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let known = open.metadata().await?;
    if (now.dev(), now.ino()) == (known.dev(), known.ino()) {
        return Ok(None);
    }
    File::open(path).await.map(Some)
}

impl Sender<'_> {
    /// Sends what there is up to the end of the file. False when no more is wanted.
    async fn drain(&mut self, file: &mut (impl AsyncRead + Unpin)) -> io::Result<bool> {
        loop {
            self.rest.reserve(BLOCK_BYTES);
            if file.read_buf(&mut self.rest).await? == 0 {
                return Ok(!self.chunks.is_closed());
            }
            let Some(last) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
                if self.rest.len() > LINE_BYTES_MAX {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "a line has no end",
                    ));
                }
                continue;
            };
            let lines = self.rest.split_to(last + 1);
            let mut out = self.render(&lines);
            let mut is_full = false;
            if let Some(left) = &mut self.left_bytes {
                let allowed = usize::try_from(*left).unwrap_or(usize::MAX);
                out.truncate(allowed);
                *left -= out.len() as u64;
                is_full = *left == 0;
            }
            if !out.is_empty() && self.chunks.send(Bytes::from(out)).await.is_err() {
                return Ok(false);
            }
            if is_full {
                return Ok(false);
            }
        }
    }

    fn render(&mut self, lines: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(lines.len());
        for raw in lines.split_inclusive(|byte| *byte == b'\n') {
            let raw = raw.strip_suffix(b"\n").unwrap_or(raw);
            let Some(line) = line::parse(raw) else {
                continue;
            };
            let is_other = self
                .options
                .stream
                .is_some_and(|stream| stream.as_bytes() != line.stream);
            let is_old = self
                .options
                .since
                .is_some_and(|since| line.timestamp().is_some_and(|time| time < since));
            if is_other || is_old {
                continue;
            }
            if self.options.timestamps && !self.is_inside_line {
                out.extend_from_slice(line.time);
                out.push(b' ');
            }
            out.extend_from_slice(line.content);
            self.is_inside_line = line.is_partial;
            if !line.is_partial {
                out.push(b'\n');
            }
        }
        out
    }
}
