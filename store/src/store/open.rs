//! Reads a database whole when a store is opened, and checks that nothing of it is missing.
//!
//! Never begins empty over something that cannot be read. Removes databases that do not count.

use super::{Config, FORMAT, Layout};
use crate::backend::{Backend, BackendError, Loaded, SledBackend};
use crate::history::Map;
use crate::mark::{Content, Mark, MarkFile};
use crate::record::{Operation, Record};
use crate::revision::Revision;
use crate::seal::Codec;
use crate::types::{Entry, OpenError};
use crate::writer::Written;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// A database that was read whole, and what was found in it.
pub(super) struct Opened {
    pub(super) backend: SledBackend,
    pub(super) maps: Maps,
    pub(super) loaded: Loaded,
    /// Its name, if it is not the first.
    pub(super) database: Option<String>,
    pub(super) written: Written,
}

impl Opened {
    /// Reads and checks the database that the mark names; removes others.
    pub(super) fn read(layout: &Layout, config: &Config) -> Result<Self, OpenError> {
        let directory = config.directory.as_path();
        let failed = |error| open_error(directory, error);
        let damaged = |what: String| OpenError::Damaged {
            directory: directory.to_owned(),
            what,
        };
        let mark = MarkFile::new(&layout.mark);
        let expected = mark.read().map_err(|error| damaged(error.to_string()))?;
        if expected.is_none() && !layout.rewritten().is_empty() {
            return Err(damaged("its mark is missing".to_owned()));
        }
        let current = layout.current(expected.as_ref());
        let database = expected.as_ref().and_then(|mark| mark.database.clone());
        if database.is_some() && !current.exists() {
            return Err(damaged(format!("{} is missing", current.display())));
        }
        let codec = Codec::new(config.seal.clone());
        let mut backend = SledBackend::open(&current, codec).map_err(failed)?;
        let mut written = Written::default();
        let (maps, loaded) = match load(&mut backend, expected, &mut written) {
            Ok(loaded) => loaded,
            Err(LoadError::Damaged(what)) => return Err(damaged(what)),
            Err(LoadError::Backend(error)) => return Err(failed(error)),
        };
        // From here on a stop is not clean until it says so again.
        mark.write(&Mark {
            reserved: loaded.reserved,
            content: None,
            database: database.clone(),
        })
        .map_err(|source| unusable(directory, source))?;
        remove_others(layout, &current).map_err(|source| unusable(directory, source))?;
        Ok(Self {
            backend,
            maps,
            loaded,
            database,
            written,
        })
    }
}

pub(super) fn unusable(directory: &Path, source: std::io::Error) -> OpenError {
    OpenError::Directory {
        directory: directory.to_owned(),
        source,
    }
}

/// Removes databases that do not count: what a rewriting left behind that did not end.
fn remove_others(layout: &Layout, current: &Path) -> std::io::Result<()> {
    let mut others = layout.rewritten();
    others.push(layout.database.clone());
    for other in others {
        if other != current && other.exists() {
            tracing::info!(directory = %other.display(), "removing a database that is not in use");
            std::fs::remove_dir_all(&other)?;
        }
    }
    Ok(())
}

enum LoadError {
    Damaged(String),
    Backend(BackendError),
}

pub(super) type Maps = HashMap<Arc<str>, (Revision, Map)>;

/// Reads everything and checks that nothing is missing; else says what.
fn load(
    backend: &mut SledBackend,
    expected: Option<Mark>,
    written: &mut Written,
) -> Result<(Maps, Loaded), LoadError> {
    let mut maps = Maps::new();
    let mut missing = None;
    let compacted = backend.compacted().map_err(LoadError::Backend)?;
    let loaded = backend
        .load(&mut |revision, record| {
            if revision > compacted && !follows(&maps, &record) {
                missing.get_or_insert((revision, record.previous));
            }
            written.add(revision, record.weight());
            apply(&mut maps, revision, record);
        })
        .map_err(LoadError::Backend)?;
    if let Some((revision, previous)) = missing {
        let previous = previous.map_or("nothing".to_owned(), |at| at.to_string());
        return Err(LoadError::Damaged(format!(
            "the record of revision {revision} follows {previous}, which is lost"
        )));
    }
    let Some(mark) = expected else {
        return Ok((maps, loaded));
    };
    if loaded.reserved < mark.reserved {
        let (found, reserved) = (loaded.reserved, mark.reserved);
        return Err(LoadError::Damaged(format!(
            "it knows revisions up to {found}, and {reserved} were reserved"
        )));
    }
    let Some(expected) = mark.content else {
        return Ok((maps, loaded));
    };
    let found = Content::of(maps.iter().map(|(name, (_, map))| (&**name, map)));
    if found.entries != expected.entries {
        let (found, expected) = (found.entries, expected.entries);
        return Err(LoadError::Damaged(format!(
            "it holds {found} entries, and {expected} were there at its last stop"
        )));
    }
    if expected.sum.is_some_and(|sum| Some(sum) != found.sum) {
        return Err(LoadError::Damaged(
            "some of its entries are older than they were at its last stop".to_owned(),
        ));
    }
    Ok((maps, loaded))
}

/// Whether the change that a record supersedes is the one that was read before it.
fn follows(maps: &Maps, record: &Record) -> bool {
    let before = maps
        .get(&record.partition)
        .and_then(|(_, map)| map.get(&record.key));
    record.previous == before.map(|entry| entry.modified)
}

fn apply(maps: &mut Maps, revision: Revision, record: Record) {
    let (newest, map) = maps.entry(record.partition).or_default();
    *newest = revision;
    match record.operation {
        Operation::Put => {
            let entry = Entry {
                created: record.created,
                modified: revision,
                value: record.value,
            };
            map.insert(record.key, entry);
        }
        Operation::Delete => drop(map.remove(&record.key)),
    }
}

fn open_error(directory: &Path, error: BackendError) -> OpenError {
    let directory = directory.to_owned();
    match error {
        BackendError::Format { found } => OpenError::Format {
            directory,
            found,
            known: FORMAT,
        },
        BackendError::Sealed(what) => OpenError::Sealed { directory, what },
        other => OpenError::Damaged {
            directory,
            what: other.to_string(),
        },
    }
}
