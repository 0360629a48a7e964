//! SHA-256 over bytes and over streams as they pass.

use ring::digest::{Context, SHA256};
use std::io::{self, Read};

/// `sha256:<hex>` of the bytes.
pub fn of(bytes: &[u8]) -> String {
    format!(
        "sha256:{}",
        hex::encode(ring::digest::digest(&SHA256, bytes))
    )
}

/// The digits behind `sha256:`.
pub fn digits(digest: &str) -> &str {
    digest.strip_prefix("sha256:").unwrap_or(digest)
}

/// Hashes and counts what is read through it, and ends with an error past `bytes_max`.
pub struct HashingReader<R> {
    inner: R,
    hash: Context,
    read_bytes: u64,
    bytes_max: u64,
}

impl<R: Read> HashingReader<R> {
    pub fn new(inner: R, bytes_max: u64) -> Self {
        Self {
            inner,
            hash: Context::new(&SHA256),
            read_bytes: 0,
            bytes_max,
        }
    }

    /// Reads what is left, then tells the digest of everything.
    pub fn finish(mut self) -> io::Result<(String, u64)> {
        io::copy(&mut self, &mut io::sink())?;
        Ok((
            format!("sha256:{}", hex::encode(self.hash.finish())),
            self.read_bytes,
        ))
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hash.update(&buffer[..count]);
        self.read_bytes += count as u64;
        if self.read_bytes > self.bytes_max {
            return Err(io::Error::other(format!(
                "more than {} bytes",
                self.bytes_max
            )));
        }
        Ok(count)
    }
}

impl<R> std::fmt::Debug for HashingReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HashingReader")
            .field("read_bytes", &self.read_bytes)
            .finish()
    }
}

/// The identity of a layer on top of its parents, as the image specification defines it.
pub fn chain(diff_ids: &[String]) -> Vec<String> {
    let mut chain: Vec<String> = Vec::with_capacity(diff_ids.len());
    for diff_id in diff_ids {
        let id = match chain.last() {
            None => diff_id.clone(),
            Some(parent) => of(format!("{parent} {diff_id}").as_bytes()),
        };
        chain.push(id);
    }
    chain
}
