//! A small file beside the database that says what must be in it.
//!
//! A database that lost its contents looks like a new one, and one that lost its end looks like
//! one that was killed. The mark tells them apart: the revision reserved, and after a clean stop
//! how many entries there were. Text, written beside, synced, renamed.

use crate::revision::Revision;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

const MAGIC: &str = "coracle-store 1";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The database knows at least this as reserved.
    pub(crate) reserved: Revision,
    /// Set by a clean stop: how many entries are current.
    pub(crate) entries: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct MarkFile {
    path: PathBuf,
}

impl MarkFile {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// `None` when there is none: the store is new.
    pub(crate) fn read(&self) -> std::io::Result<Option<Mark>> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => parse(&text).map(Some).ok_or_else(|| {
                std::io::Error::new(ErrorKind::InvalidData, "its mark cannot be read")
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn write(&self, mark: Mark) -> std::io::Result<()> {
        let mut text = format!("{MAGIC}\nreserved {}\n", mark.reserved);
        if let Some(entries) = mark.entries {
            text.push_str(&format!("entries {entries}\n"));
        }
        let beside = self.path.with_extension("new");
        let mut file = File::create(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, &self.path)?;
        match self.path.parent() {
            Some(directory) => File::open(directory)?.sync_all(),
            None => Ok(()),
        }
    }
}

fn parse(text: &str) -> Option<Mark> {
    let mut lines = text.lines();
    if lines.next()? != MAGIC {
        return None;
    }
    let mut mark = Mark::default();
    for line in lines {
        let (name, number) = line.split_once(' ')?;
        let number = number.parse().ok()?;
        match name {
            "reserved" => mark.reserved = Revision(number),
            "entries" => mark.entries = Some(number),
            _ => return None,
        }
    }
    Some(mark)
}
