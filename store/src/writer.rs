//! The one writer: takes what has queued up, decides each write, keeps the batch, publishes it,
//! then answers.
//!
//! Invariants: a synced write is answered after it is on disk; a revision is never given twice,
//! crash or not; readers and watchers see batches in order. When the disk fails the writer answers
//! everyone with that error, as what the disk holds is no longer known, until it has written all that
//! is visible anew (`heal.rs`).

use crate::archive::Archive;
use crate::backend::{Backend, BackendError, Numbered};
use crate::mark::{Content, Mark, MarkFile};
use crate::revision::Revision;
use crate::seal::Codec;
use crate::state::State;
use crate::store::{Config, Layout};
use crate::types::{CommitError, Durability, GroupError, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

mod compaction;
mod drafts;
mod gather;
mod heal;
mod lazy;
mod rewrite;

use compaction::Compaction;
pub(crate) use compaction::Written;
use drafts::Drafts;
use gather::Gather;
use heal::Trouble;
use lazy::{Lazy, hastier};
use rewrite::{Retired, Rewrite};

/// Writes in one batch: enough to share a flush, few enough to bound how long the first waits.
const BATCH_MAX: usize = 512;
/// Revisions reserved at a time: one more write to the disk each this many changes.
const RESERVE_BLOCK: u64 = 100_000;
/// Whether the last reader of a database that was replaced has let go of it.
const RETIRED_LOOK_EVERY: Duration = Duration::from_millis(10);

pub(crate) enum Request {
    /// All of the writes, or none.
    Commit(Vec<Write>, oneshot::Sender<Decided>),
    Compact(Revision, oneshot::Sender<Result<(), CommitError>>),
    Archive(oneshot::Sender<Result<std::path::PathBuf, String>>),
    Freeze(oneshot::Sender<crate::archive::Frozen>),
    Rewrite(rewrite::Answer),
    Reseal(crate::archive::Resealed),
    Close(oneshot::Sender<()>),
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) writes: AtomicU64,
    pub(crate) flushes: AtomicU64,
}

/// What a store was found to be when it was opened.
pub(crate) struct Found {
    pub(crate) reserved: Revision,
    /// The name of the database, if it is not the first.
    pub(crate) database: Option<String>,
    pub(crate) written: Written,
    pub(crate) codec: Codec,
}

pub(crate) struct Writer {
    backend: Box<dyn Backend>,
    database: Option<String>,
    /// The database is being written anew.
    rewrite: Option<Rewrite>,
    /// Asked for while another one is under way or compaction is.
    rewrite_next: Option<rewrite::Answer>,
    retired: Option<Retired>,
    state: Arc<State>,
    counters: Arc<Counters>,
    config: Config,
    compaction: Compaction,
    gather: Gather,
    archive: Archive,
    mark: MarkFile,
    /// The newest revision given out.
    last: Revision,
    reserved: Revision,
    /// Visible, not yet on disk.
    lazy: Lazy,
    /// All of history that was ever seen by this process, for the window of the compaction.
    written_bytes: u64,
    broken: Option<Trouble>,
}

/// How keeping a batch went, short of a failure, which is in `broken`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    All,
    Overtaken,
}

/// Writes that were decided, in order of revision, each with how long it may wait.
type Batch = Vec<(Numbered, Durability)>;

/// The revision of each write, or why none was done.
pub(crate) type Decided = Result<Vec<Revision>, GroupError>;

type Answer = (oneshot::Sender<Decided>, Decided);

impl Writer {
    pub(crate) fn new(
        backend: Box<dyn Backend>,
        state: Arc<State>,
        counters: Arc<Counters>,
        config: Config,
        found: Found,
    ) -> Self {
        let compaction = Compaction::new(state.compacted(), found.written);
        let written_bytes = compaction.found_bytes();
        let archive = Archive::new(&config, found.codec);
        let last = state.revision();
        let mark = MarkFile::new(&Layout::new(&config.directory).mark);
        Self {
            backend,
            database: found.database,
            rewrite: None,
            rewrite_next: None,
            retired: None,
            state,
            counters,
            config,
            compaction,
            gather: Gather::default(),
            archive,
            mark,
            last,
            reserved: found.reserved,
            lazy: Lazy::default(),
            written_bytes,
            broken: None,
        }
    }

    #[allow(clippy::disallowed_methods)] // The store's own timers; time never decides a result.
    pub(crate) fn run(mut self, requests: &Receiver<Request>) {
        loop {
            let wait = self.wait(Instant::now());
            match requests.recv_timeout(wait) {
                Ok(Request::Commit(writes, answer)) => {
                    let after = self.batch(writes, answer, requests);
                    if after.is_some_and(|request| self.serve(request)) {
                        return;
                    }
                }
                Ok(other) => {
                    if self.serve(other) {
                        return;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return self.close(),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.tick(Instant::now());
        }
    }

    fn wait(&self, now: Instant) -> Duration {
        if let Some(trouble) = &self.broken {
            return trouble.wait(now);
        }
        let is_rewriting = self.rewrite.is_some() || self.rewrite_next.is_some();
        if self.compaction.is_under_way() || is_rewriting {
            return Duration::ZERO;
        }
        if self.retired.is_some() {
            return RETIRED_LOOK_EVERY;
        }
        let lazy = self
            .lazy
            .due()
            .map_or(self.config.tick, |due| due.saturating_duration_since(now));
        let archive = self.archive.wait(now, &self.state);
        lazy.min(archive.unwrap_or(self.config.tick))
            .min(self.config.tick)
    }

    fn tick(&mut self, now: Instant) {
        if self.lazy.due().is_some_and(|due| due <= now) {
            self.keep(Vec::new());
        }
        self.retired = self.retired.take().and_then(Retired::remove);
        if let Some(trouble) = &self.broken {
            let why = trouble.why.to_string();
            self.give_up_rewriting(&why);
            return self.heal(now);
        }
        if self.rewrite.is_some() {
            self.step_rewrite();
            return self.archive.tick(now, &self.state);
        }
        if let Some(to) = self
            .compaction
            .due(now, &self.config, self.last, self.written_bytes)
        {
            // What is set aside must be on disk before history up to it can be dropped.
            self.keep(Vec::new());
            self.compaction.begin(&self.state, to);
        }
        if let Some(oldest) = self.compaction.readable(now, &self.config) {
            self.state.set_readable(oldest);
        }
        let Self {
            compaction,
            backend,
            ..
        } = self;
        let stepped = compaction.step(&mut **backend);
        self.fail_on(|_| stepped);
        if !self.compaction.is_under_way()
            && let Some(answer) = self.rewrite_next.take()
        {
            self.begin_rewrite(answer);
        }
        self.archive.tick(now, &self.state);
    }

    fn mark(&self, reserved: Revision, content: Option<Content>) -> Mark {
        Mark {
            reserved,
            content,
            database: self.database.clone(),
        }
    }

    /// Synced so that a clean stop loses no lazy write and leaves no gap in the revisions.
    fn close(&mut self) {
        self.keep(Vec::new());
        self.give_up_rewriting("the store was closed before the database was written anew");
        if self.broken.is_none() {
            let last = self.last;
            let content = Some(self.state.content());
            // Before the database: the mark never promises more than it holds.
            let mark = self.mark(last, content);
            self.fail_on(|writer| writer.mark.write(&mark));
            self.fail_on(|writer| writer.backend.reserve(last));
        }
        self.state.close();
    }

    #[allow(clippy::disallowed_methods)] // Bounds how long a batch waits for company.
    /// Gives back what came in between the commits and has to wait for their end.
    fn batch(
        &mut self,
        first: Vec<Write>,
        answer: oneshot::Sender<Decided>,
        requests: &Receiver<Request>,
    ) -> Option<Request> {
        self.follow();
        let mut drafts = Drafts::new(&self.state);
        let mut records = Batch::new();
        let mut answers: Vec<Answer> = Vec::new();
        let mut haste = Durability::Renewal;
        let mut after: Option<Request> = None;
        let mut writes_count = 0;
        let begun = Instant::now();
        let mut next = Some((first, answer));
        while let Some((writes, answer)) = next.take() {
            writes_count += writes.len();
            let hasty = writes.iter().map(|write| write.durability);
            let hasty = hasty.fold(Durability::Renewal, hastier);
            let decided = self.decide(writes, &mut drafts, &mut records);
            if decided.is_ok() {
                haste = hastier(haste, hasty);
            }
            let must_sync = haste == Durability::Synced;
            answers.push((answer, decided));
            if writes_count >= BATCH_MAX {
                break;
            }
            let mut found = requests.try_recv();
            while matches!(found, Err(TryRecvError::Empty))
                && must_sync
                && self.gather.waits(answers.len(), begun.elapsed())
            {
                std::thread::sleep(gather::LOOK_EVERY);
                found = requests.try_recv();
            }
            match found {
                Ok(Request::Commit(writes, answer)) => next = Some((writes, answer)),
                Ok(other) => after = Some(other),
                Err(_) => {}
            }
        }
        if haste == Durability::Synced {
            self.gather.done(answers.len());
        }
        self.settle(drafts, records, answers, haste);
        after
    }

    /// Everything but commits; true when it was the end.
    fn serve(&mut self, request: Request) -> bool {
        match request {
            Request::Compact(to, answer) => {
                let done = self.compact_to(to);
                drop(answer.send(done));
            }
            Request::Archive(answer) => self.archive.write(&self.state, Some(answer)),
            Request::Freeze(answer) => drop(answer.send(self.archive.freeze(&self.state))),
            Request::Rewrite(answer) => self.begin_rewrite(answer),
            Request::Reseal(answer) => self.archive.reseal(answer),
            Request::Close(answer) => {
                self.close();
                let _ = answer.send(());
                return true;
            }
            Request::Commit(..) => unreachable!("commits go into a batch"),
        }
        false
    }

    /// Keeps, publishes and answers a batch that was decided.
    fn settle(&mut self, drafts: Drafts, records: Batch, answers: Vec<Answer>, haste: Durability) {
        if self.broken.is_none() && !records.is_empty() {
            let weight = |((_, record), _): &(Numbered, Durability)| record.weight();
            self.written_bytes += records.iter().map(weight).sum::<u64>();
            self.reserve();
            let kept = match haste {
                Durability::Synced => {
                    self.keep(records.into_iter().map(|(numbered, _)| numbered).collect())
                }
                Durability::Lazy | Durability::Renewal => self.set_aside(records),
            };
            if kept == Kept::Overtaken {
                return self.overtaken(answers);
            }
        }
        if let Some(trouble) = &self.broken {
            for (answer, decided) in answers {
                let result = decided.and(Err(trouble.why.clone().into()));
                drop(answer.send(result));
            }
            return;
        }
        self.publish(drafts);
        for (answer, decided) in answers {
            drop(answer.send(decided));
        }
    }

    #[allow(clippy::disallowed_methods)] // Bounds how long a lazy write may wait.
    fn set_aside(&mut self, records: Batch) -> Kept {
        let now = Instant::now();
        for (numbered, durability) in records {
            let is_renewal = durability == Durability::Renewal;
            let delay = match is_renewal {
                true => self.config.renewal_delay,
                false => self.config.lazy_delay,
            };
            self.lazy.add(numbered, is_renewal, now + delay);
        }
        match self.lazy.is_full(&self.config) {
            true => self.keep(Vec::new()),
            false => Kept::All,
        }
    }

    /// Writes what was set aside and this batch, in order of revision, and waits for the disk.
    fn keep(&mut self, records: Vec<Numbered>) -> Kept {
        let mut all = self.lazy.take();
        all.extend(records);
        if all.is_empty() || self.broken.is_some() {
            return Kept::All;
        }
        self.counters.flushes.fetch_add(1, Ordering::Relaxed);
        match self.backend.commit(&all) {
            Err(BackendError::Overtaken) => return Kept::Overtaken,
            result => self.fail_on(|_| result),
        }
        Kept::All
    }

    /// Everyone of the batch decided on a state that is no longer the newest: they look again.
    fn overtaken(&mut self, answers: Vec<Answer>) {
        self.follow();
        for (answer, decided) in answers {
            let overtaken = CommitError::Conflict { current: None };
            let result = decided.and(Err(overtaken.into()));
            drop(answer.send(result));
        }
    }

    /// Takes over what other servers committed.
    fn follow(&mut self) {
        let foreign = match self.backend.foreign() {
            Ok(foreign) => foreign,
            Err(error) => return self.fail_on(|_| Err(error)),
        };
        if foreign.is_empty() {
            return;
        }
        let mut drafts = Drafts::new(&self.state);
        for (revision, record) in foreign {
            drafts.adopt(revision, &record);
            self.last = revision;
        }
        self.publish(drafts);
    }

    /// No revision is visible before the disk knows that it is used.
    fn reserve(&mut self) {
        if self.last <= self.reserved {
            return;
        }
        let up_to = Revision(self.last.0 + RESERVE_BLOCK);
        self.fail_on(|writer| writer.backend.reserve(up_to));
        if self.broken.is_some() {
            return;
        }
        // After the database: the mark never promises more than it holds.
        let mark = self.mark(up_to, None);
        self.fail_on(|writer| writer.mark.write(&mark));
        self.reserved = up_to;
    }

    fn fail_on<E: Into<BackendError>>(&mut self, act: impl FnOnce(&mut Self) -> Result<(), E>) {
        if let Err(error) = act(self) {
            self.fail(error.into());
        }
    }

    /// Checks every write before it does any: they see the state before the group.
    fn decide(&mut self, writes: Vec<Write>, drafts: &mut Drafts, records: &mut Batch) -> Decided {
        for (place, write) in writes.iter().enumerate() {
            let checked = drafts.check(write, self.config.value_bytes_max);
            checked.map_err(|error| GroupError { place, error })?;
        }
        let revisions = writes.into_iter().map(|write| {
            self.last = self.last.next();
            let durability = write.durability;
            records.push((drafts.apply(self.last, write), durability));
            self.last
        });
        Ok(revisions.collect())
    }

    fn publish(&self, drafts: Drafts) {
        let persisted = self
            .lazy
            .first()
            .map_or(self.last, |revision| Revision(revision.0.saturating_sub(1)));
        let count = drafts.publish(self.last, persisted);
        self.counters
            .writes
            .fetch_add(count as u64, Ordering::Relaxed);
    }

    fn compact_to(&mut self, to: Revision) -> Result<(), CommitError> {
        let to = to.min(self.state.revision());
        if let Some(trouble) = &self.broken {
            return Err(trouble.why.clone());
        }
        if self.rewrite.is_some() {
            let why = "the database is being written anew".to_owned();
            return Err(CommitError::Backend(why));
        }
        self.keep(Vec::new());
        self.compaction.begin(&self.state, to);
        while self.compaction.is_under_way() {
            let Self {
                compaction,
                backend,
                ..
            } = self;
            let stepped = compaction.step(&mut **backend);
            self.fail_on(|_| stepped);
            if let Some(trouble) = &self.broken {
                return Err(trouble.why.clone());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
