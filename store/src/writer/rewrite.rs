//! Writes the database anew beside the old one: each record in the form of today, sealed with the
//! key of today. Bounded work a step, writes in between.
//!
//! The mark names the database that counts: it is the one step in which the new one takes over.
//! Whatever ends the process before leaves the old one, and what was written beside is removed at
//! the next start. Compaction waits meanwhile, so that what was copied stays as it was.

use super::Writer;
use crate::backend::{Backend, BackendError, Reader};
use crate::mark::Mark;
use crate::revision::Revision;
use crate::store::Layout;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Records copied in one step, between which writes are served.
const RECORDS_PER_STEP: usize = 500;

pub(crate) type Answer = oneshot::Sender<Result<u64, String>>;

/// A copy under way.
pub(super) struct Rewrite {
    new: Box<dyn Backend>,
    pub(super) name: String,
    directory: PathBuf,
    copied: Revision,
    records: u64,
    answer: Answer,
}

/// The old database, until the last reader has let go of it.
pub(super) struct Retired {
    reader: Option<Arc<dyn Reader>>,
    directory: PathBuf,
    /// It failed, and what failed holds its files open for ever.
    is_held: bool,
    records: u64,
    answer: Option<Answer>,
}

impl Rewrite {
    /// `parent` holds the databases, of which `current` is in use.
    pub(super) fn begin(
        old: &dyn Backend,
        parent: &Path,
        current: Option<&str>,
        answer: Answer,
    ) -> Result<Self, (Answer, BackendError)> {
        let number = current
            .and_then(|name| name.rsplit('-').next()?.parse::<u64>().ok())
            .unwrap_or(0);
        let name = format!("database-{}", number + 1);
        let directory = parent.join(&name);
        match old.beside(&directory) {
            Ok(new) => Ok(Self {
                new,
                name,
                directory,
                copied: Revision(0),
                records: 0,
                answer,
            }),
            Err(error) => Err((answer, error)),
        }
    }

    /// Copies a bounded part; true when nothing was left.
    pub(super) fn step(&mut self, old: &dyn Backend) -> Result<bool, BackendError> {
        let records = old.reader().after(self.copied, RECORDS_PER_STEP)?;
        let Some((last, _)) = records.last() else {
            return Ok(true);
        };
        self.copied = *last;
        self.records += records.len() as u64;
        self.new.commit(&records)?;
        Ok(records.len() < RECORDS_PER_STEP)
    }

    /// The numbers beside the records, and all of it on stable storage.
    pub(super) fn complete(
        &mut self,
        compacted: Revision,
        reserved: Revision,
    ) -> Result<(), BackendError> {
        self.new.compact(&[], compacted)?;
        self.new.reserve(reserved)?;
        let parents = [Some(self.directory.as_path()), self.directory.parent()];
        for directory in parents.into_iter().flatten() {
            File::open(directory).and_then(|directory| directory.sync_all())?;
        }
        Ok(())
    }

    /// The new database, and what is to become of the old one, which is in `directory`.
    pub(super) fn take_over(self, directory: PathBuf) -> (Box<dyn Backend>, Retired) {
        let retired = Retired {
            reader: None,
            directory,
            is_held: false,
            records: self.records,
            answer: Some(self.answer),
        };
        (self.new, retired)
    }

    /// Leaves the old database in use.
    pub(super) fn give_up(self, why: &str) {
        drop(self.new);
        drop(std::fs::remove_dir_all(&self.directory));
        drop(self.answer.send(Err(why.to_owned())));
    }

    /// Nobody knows which of the two the mark names now. They hold the same, so both stay.
    fn leave(self, why: &str) {
        drop(self.answer.send(Err(why.to_owned())));
    }
}

impl Retired {
    /// One that could not be written to, in whose place another one came.
    pub(super) fn failed(directory: PathBuf, reader: Arc<dyn Reader>) -> Self {
        Self {
            reader: Some(reader),
            directory,
            is_held: true,
            records: 0,
            answer: None,
        }
    }

    /// What readers read from; the one handle of it that nobody else takes.
    pub(super) fn set_reader(&mut self, reader: Arc<dyn Reader>) {
        self.reader = Some(reader);
    }

    /// Removes the old database once nobody reads it; else gives itself back.
    pub(super) fn remove(self) -> Option<Self> {
        if self
            .reader
            .as_ref()
            .is_some_and(|reader| Arc::strong_count(reader) > 1)
        {
            return Some(self);
        }
        drop(self.reader);
        if self.is_held {
            give_back_space(&self.directory);
        }
        let removed = std::fs::remove_dir_all(&self.directory);
        let result = removed.map(|()| self.records).map_err(|error| {
            format!(
                "the old database {} cannot be removed: {error}",
                self.directory.display()
            )
        });
        match (self.answer, result) {
            (Some(answer), result) => drop(answer.send(result)),
            (None, Err(why)) => tracing::warn!("{why}; the next start removes it"),
            (None, Ok(_)) => {}
        }
        None
    }
}

/// Files that are removed and held open keep their space.
fn give_back_space(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            give_back_space(&path);
        } else if let Ok(file) = File::options().write(true).open(&path) {
            drop(file.set_len(0));
        }
    }
}

impl Writer {
    pub(super) fn begin_rewrite(&mut self, answer: Answer) {
        if let Some(trouble) = &self.broken {
            return drop(answer.send(Err(trouble.why.to_string())));
        }
        if self.rewrite.is_some() || self.retired.is_some() || self.rewrite_next.is_some() {
            let why = "the database is being written anew already";
            return drop(answer.send(Err(why.to_owned())));
        }
        if self.compaction.is_under_way() {
            self.rewrite_next = Some(answer);
            return;
        }
        let parent = self.config.directory.clone();
        match Rewrite::begin(&*self.backend, &parent, self.database.as_deref(), answer) {
            Ok(begun) => self.rewrite = Some(begun),
            Err((answer, error)) => drop(answer.send(Err(error.to_string()))),
        }
    }

    /// Copies on; when all is copied, what is set aside goes with it and the new one takes over.
    pub(super) fn step_rewrite(&mut self) {
        let Some(mut rewrite) = self.rewrite.take() else {
            return;
        };
        let done = match rewrite.step(&*self.backend) {
            Ok(false) => {
                self.rewrite = Some(rewrite);
                return;
            }
            Ok(true) => self.finish_rewrite(&mut rewrite),
            Err(error) => Err(error),
        };
        if let Some(trouble) = &self.broken {
            return rewrite.give_up(&trouble.why.to_string());
        }
        if let Err(error) = done {
            tracing::error!(%error, "the database was not written anew");
            return rewrite.give_up(&error.to_string());
        }
        let old = self.mark(self.reserved, None);
        let named = Mark {
            database: Some(rewrite.name.clone()),
            ..old.clone()
        };
        self.fail_on(|writer| writer.mark.write(&named));
        if let Some(trouble) = &self.broken {
            return rewrite.leave(&trouble.why.to_string());
        }
        let layout = Layout::new(&self.config.directory);
        let old = layout.current(Some(&old));
        self.database = named.database;
        let (new, mut retired) = rewrite.take_over(old);
        self.backend = new;
        retired.set_reader(self.state.set_reader(self.backend.reader()));
        self.retired = Some(retired);
    }

    /// Whoever waits for it hears why.
    pub(super) fn give_up_rewriting(&mut self, why: &str) {
        if let Some(rewrite) = self.rewrite.take() {
            rewrite.give_up(why);
        }
        if let Some(answer) = self.rewrite_next.take() {
            drop(answer.send(Err(why.to_owned())));
        }
    }

    fn finish_rewrite(&mut self, rewrite: &mut Rewrite) -> Result<(), BackendError> {
        self.keep(Vec::new());
        while !rewrite.step(&*self.backend)? {}
        rewrite.complete(self.state.compacted(), self.reserved)
    }
}
