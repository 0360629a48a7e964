//! A small file beside the database that says what must be in it.
//!
//! A database that lost its contents looks like a new one, and one that lost its end looks like
//! one that was killed. The mark tells them apart: the revision reserved, and after a clean stop
//! how many entries there were. It also names the database, so that one that was written anew
//! takes the old one's place in one step. Text, written beside, synced, renamed.

use crate::revision::Revision;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

const MAGIC: &str = "coracle-store 1";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The database knows at least this as reserved.
    pub(crate) reserved: Revision,
    /// Set by a clean stop: how many entries are current.
    pub(crate) entries: Option<u64>,
    /// The directory of the database once it was written anew.
    pub(crate) database: Option<String>,
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

    pub(crate) fn write(&self, mark: &Mark) -> std::io::Result<()> {
        let mut text = format!("{MAGIC}\nreserved {}\n", mark.reserved);
        if let Some(entries) = mark.entries {
            text.push_str(&format!("entries {entries}\n"));
        }
        if let Some(database) = &mark.database {
            text.push_str(&format!("database {database}\n"));
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
        let (name, value) = line.split_once(' ')?;
        match name {
            "reserved" => mark.reserved = Revision(value.parse().ok()?),
            "entries" => mark.entries = Some(value.parse().ok()?),
            "database" if is_database(value) => mark.database = Some(value.to_owned()),
            _ => return None,
        }
    }
    Some(mark)
}

/// A name that a database written anew gets: `database-N`.
pub(crate) fn is_database(name: &str) -> bool {
    name.strip_prefix("database-")
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}
