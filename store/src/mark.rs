//! A small file beside the database that says what must be in it.
//!
//! A database that lost its contents looks like a new one, and one that lost its end looks like
//! one that was killed. The mark tells them apart: the revision reserved, and after a clean stop
//! how many entries there were, and a sum of which ones. It also names the database, so that one that was written anew
//! takes the old one's place in one step. Text, written beside, synced, renamed.

use crate::history::Map;
use crate::revision::Revision;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

const MAGIC: &str = "coracle-store 1";
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The database knows at least this as reserved.
    pub(crate) reserved: Revision,
    /// Set by a clean stop: what is current.
    pub(crate) content: Option<Content>,
    /// The directory of the database once it was written anew.
    pub(crate) database: Option<String>,
}

/// Which entries there are. What is in each is the affair of its record's checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) entries: u64,
    /// Of all of them, in any order; marks of before had none.
    pub(crate) sum: Option<u64>,
}

impl Content {
    pub(crate) fn of<'a>(maps: impl Iterator<Item = (&'a str, &'a Map)>) -> Self {
        let (mut entries, mut sum) = (0, 0_u64);
        for (partition, map) in maps {
            for (key, entry) in map {
                let mut one = crc32fast::Hasher::new();
                one.update(partition.as_bytes());
                one.update(&[0]);
                one.update(key.as_bytes());
                let key_sum = u64::from(one.finalize());
                entries += 1;
                // Spread, so that two that change do not make up for each other.
                let both = (key_sum << 32 | 1).wrapping_mul(entry.modified.0.wrapping_add(SPREAD));
                sum = sum.wrapping_add(both.rotate_left(29));
            }
        }
        Self {
            entries,
            sum: Some(sum),
        }
    }
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
        if let Some(content) = mark.content {
            text.push_str(&format!("entries {}\n", content.entries));
            if let Some(sum) = content.sum {
                text.push_str(&format!("sum {sum:016x}\n"));
            }
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
            "entries" => mark.content.get_or_insert_default().entries = value.parse().ok()?,
            "sum" => {
                let sum = u64::from_str_radix(value, 16).ok()?;
                mark.content.get_or_insert_default().sum = Some(sum);
            }
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
