//! What is kept for a start without the server: one file, replaced as a whole, of gzip (whose
//! checksum tells a damaged one) over JSON.

use crate::atomic_file;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::time::Duration;

/// Bounds what a damaged file can cost; a hundred thousand endpoints are below.
const PLAIN_BYTES_MAX: u64 = 64 << 20;
/// Between two writes at least: what changes together is written together.
pub const PAUSE_MIN: Duration = Duration::from_secs(10);
pub const PAUSE_MAX: Duration = Duration::from_secs(300);
/// Under steady change a file is written the less often the larger it is, so that a flash card
/// bears it.
const BYTES_PER_SECOND: u64 = 1024;

/// After a write of so many bytes.
pub fn pause_after(bytes: u64) -> Duration {
    Duration::from_secs(bytes / BYTES_PER_SECOND).clamp(PAUSE_MIN, PAUSE_MAX)
}

/// None when there is no file.
pub fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut plain = GzDecoder::new(BufReader::new(file)).take(PLAIN_BYTES_MAX);
    let content = serde_json::from_reader(BufReader::new(&mut plain))?;
    // The checksum is behind the last byte.
    io::copy(&mut plain, &mut io::sink())?;
    Ok(Some(content))
}

/// The bytes written.
pub fn write(path: &Path, content: &impl Serialize) -> io::Result<u64> {
    put(path, |packed| Ok(serde_json::to_writer(packed, content)?))
}

/// Of content that is JSON already, which is made more quickly than it is packed.
pub fn write_json(path: &Path, json: &[u8]) -> io::Result<u64> {
    put(path, |packed| packed.write_all(json))
}

fn put(
    path: &Path,
    fill: impl FnOnce(&mut GzEncoder<Vec<u8>>) -> io::Result<()>,
) -> io::Result<u64> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    fill(&mut packed)?;
    let packed = packed.finish()?;
    if std::fs::read(path).is_ok_and(|there| there == packed) {
        return Ok(packed.len() as u64);
    }
    atomic_file::write(path, &packed, 0o600)?;
    Ok(packed.len() as u64)
}

#[cfg(test)]
mod tests;
