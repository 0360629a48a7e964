//! The node's keys and certificates: `<data-dir>/pki`, all of mode 0600.

use crate::{AgentError, atomic_file};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub struct Files {
    directory: PathBuf,
}

/// A certificate with its key, in PEM.
#[derive(Clone)]
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pair")
    }
}

impl Files {
    pub fn open(data_dir: &Path) -> Result<Self, AgentError> {
        Self::open_in(data_dir.join("pki"))
    }

    /// Of a node that joined a cluster which is not ours: neither is taken for the other.
    pub fn open_joined(data_dir: &Path) -> Result<Self, AgentError> {
        Self::open_in(data_dir.join("pki-joined"))
    }

    fn open_in(directory: PathBuf) -> Result<Self, AgentError> {
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory);
        made.map_err(|source| AgentError::Disk {
            action: "make",
            path: directory.clone(),
            source,
        })?;
        Ok(Self { directory })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub fn authority(&self) -> Result<Option<String>, AgentError> {
        self.read("ca.crt")
    }

    pub fn set_authority(&self, pem: &str) -> Result<(), AgentError> {
        self.write("ca.crt", pem)
    }

    /// Certificate and key are one file, so that they are always of each other.
    pub fn pair(&self, name: &str) -> Result<Option<Pair>, AgentError> {
        let Some(text) = self.read(&format!("{name}.pem"))? else {
            return Ok(None);
        };
        // The key comes first.
        let begin = "-----BEGIN CERTIFICATE-----";
        let Some(at) = text.find(begin) else {
            return Ok(None);
        };
        Ok(Some(Pair {
            key: text[..at].to_owned(),
            certificate: text[at..].to_owned(),
        }))
    }

    pub fn set_pair(&self, name: &str, pair: &Pair) -> Result<(), AgentError> {
        let text = format!("{}\n{}", pair.key.trim_end(), pair.certificate);
        self.write(&format!("{name}.pem"), &text)
    }

    pub fn remove_pair(&self, name: &str) -> Result<(), AgentError> {
        let path = self.path(&format!("{name}.pem"));
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(AgentError::Disk {
                action: "remove",
                path,
                source,
            }),
            _ => Ok(()),
        }
    }

    fn read(&self, name: &str) -> Result<Option<String>, AgentError> {
        let path = self.path(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(AgentError::Disk {
                action: "read",
                path,
                source,
            }),
        }
    }

    fn write(&self, name: &str, text: &str) -> Result<(), AgentError> {
        let path = self.path(name);
        atomic_file::write(&path, text.as_bytes(), 0o600).map_err(|source| AgentError::Disk {
            action: "write",
            path,
            source,
        })
    }
}

#[cfg(test)]
mod tests;
