//! One sandbox on a network of plugins, as it is kept on disk: all that they were told at ADD, and
//! what came of it. DEL is told the same, whatever has changed by then.

use super::configuration::Network;
use super::outcome::{self, Outcome};
use crate::atomic_file;
use crate::runtime::SandboxId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// The one link that a pod has.
pub const LINK: &str = "eth0";
/// Before the names of files that cannot be read.
const ASIDE: &str = ".unreadable-";

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Attachment {
    pub sandbox: SandboxId,
    pub network: Network,
    pub namespace: PathBuf,
    /// `CNI_ARGS`.
    pub arguments: String,
    /// By capability.
    pub capabilities: Map<String, Value>,
    /// Where the plugins were, for a wipe.
    pub directories: Vec<PathBuf>,
    /// None while ADD has not come to its end.
    pub outcome: Option<Outcome>,
}

impl Attachment {
    /// None when the plugins gave none.
    pub fn addresses(&self) -> Option<Vec<IpAddr>> {
        let addresses = outcome::addresses(self.outcome.as_ref()?, LINK).ok()?;
        (!addresses.is_empty()).then_some(addresses)
    }
}

/// What is kept of a sandbox.
#[derive(Debug, PartialEq)]
pub enum Found {
    Nothing,
    Known(Box<Attachment>),
    /// Something, which a bad disk made unreadable.
    Unreadable,
}

/// A directory with a file a sandbox. All of it waits for the disk.
#[derive(Clone, Debug)]
pub struct Attachments(PathBuf);

impl Attachments {
    /// The directory is made with the first file.
    pub fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// Also after a power cut: plugins keep addresses on disk, too.
    pub fn keep(&self, attachment: &Attachment) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.0)?;
        let text = serde_json::to_vec(attachment)?;
        atomic_file::write(&self.path(&attachment.sandbox), &text, 0o600)
    }

    /// One that a bad disk made unreadable is set aside: no plugin could be told anything, and its
    /// pod would never end.
    pub fn find(&self, sandbox: &SandboxId) -> io::Result<Found> {
        let text = match fs::read(self.path(sandbox)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(match self.aside(sandbox).try_exists()? {
                    true => Found::Unreadable,
                    false => Found::Nothing,
                });
            }
            Err(error) => return Err(error),
        };
        match serde_json::from_slice(&text) {
            Ok(known) => Ok(Found::Known(Box::new(known))),
            Err(error) => {
                let aside = self.aside(sandbox);
                let path = aside.display();
                tracing::error!(%error, %path, "what network plugins were told is unreadable");
                fs::rename(self.path(sandbox), &aside)?;
                Ok(Found::Unreadable)
            }
        }
    }

    /// Whatever there is of it, be it set aside or half written.
    pub fn forget(&self, sandbox: &SandboxId) -> io::Result<()> {
        atomic_file::remove(&self.aside(sandbox))?;
        atomic_file::remove(&self.path(sandbox))
    }

    /// Also those whose files are set aside.
    pub fn sandboxes(&self) -> io::Result<BTreeSet<SandboxId>> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
            Err(error) => return Err(error),
        };
        let mut sandboxes = BTreeSet::new();
        for entry in entries {
            let Ok(name) = entry?.file_name().into_string() else {
                continue;
            };
            let id = match name.strip_prefix(ASIDE) {
                Some(id) => Some(id.to_owned()),
                None => (!name.starts_with('.')).then_some(name),
            };
            sandboxes.extend(id.map(SandboxId));
        }
        Ok(sandboxes)
    }

    fn path(&self, sandbox: &SandboxId) -> PathBuf {
        self.0.join(&sandbox.0)
    }

    fn aside(&self, sandbox: &SandboxId) -> PathBuf {
        self.0.join(format!("{ASIDE}{sandbox}"))
    }
}

#[cfg(test)]
mod tests;
