//! Applies what lies in `<data-dir>/manifests`, and takes away what no longer does.
//!
//! The files are what is wanted; a ConfigMap for each file, in the cluster itself, is what was
//! done (see `record`). What a file no longer says is deleted only if it was made for a file, is
//! still the same object, and no other file says it. A directory that is missing, and a file that
//! cannot be read, take nothing away. Nothing is looked at unless the kernel tells of a change or
//! something failed.

mod apply; // One object, over the API.
mod directory; // The files, and when they change.
mod document; // From text to objects. Pure.
mod plan; // What is to be taken away. Pure.
mod record; // What was done, kept in the cluster.

use apply::Applier;
use coracle_client::Client;
use coracle_client::events::{EventType, Recorder, reference};
use directory::{Directory, File, Seen};
use document::Wanted;
use record::{Entry, Identity, Record};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// After a failure, and twice as long after each further one.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(300);

/// What is kept and told of a failure; an event takes no more.
const FAILURE_BYTES_MAX: usize = 900;

const COMPONENT: &str = "coracle-manifests";

/// Keeps the cluster in line with the files until `stop`.
pub async fn run(data_dir: &Path, client: Client, stop: CancellationToken) {
    let recorder = Recorder::new(client.clone(), COMPONENT, "");
    let mut keeper = Keeper {
        directory: Directory::new(&data_dir.join("manifests")),
        applier: Applier::new(client),
        recorder,
        records: None,
        done: BTreeMap::new(),
    };
    stop.run_until_cancelled(keeper.keep()).await;
}

struct Keeper {
    directory: Directory,
    applier: Applier,
    recorder: Recorder,
    /// By name of file; none until they were read.
    records: Option<BTreeMap<String, Record>>,
    /// The state of each file that is applied as a whole.
    done: BTreeMap<String, directory::Stamp>,
}

/// What one file is about: what it says, or why that is not known.
type Said = Result<Vec<Wanted>, String>;

impl Keeper {
    async fn keep(&mut self) {
        let mut wait = RETRY_MIN;
        loop {
            // Before the files are read, so that no change is missed.
            self.directory.watch();
            if self.pass().await {
                self.directory.changed().await;
                wait = RETRY_MIN;
                continue;
            }
            tokio::select! {
                () = self.directory.changed() => wait = RETRY_MIN,
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(RETRY_MAX),
            }
        }
    }

    /// True when everything is as the files say.
    async fn pass(&mut self) -> bool {
        let files = match self.directory.read() {
            Seen::Missing => return true,
            Seen::Unreadable => return false,
            Seen::Files(files) => files,
        };
        if files.is_empty() && self.records.as_ref().is_some_and(BTreeMap::is_empty) {
            return true;
        }
        if self.records.is_none() {
            match self.applier.records().await {
                Ok(records) => self.records = Some(records),
                Err(error) => {
                    tracing::warn!(error, "what was applied before is not known yet");
                    return false;
                }
            }
        }
        self.applier.forget_kinds();
        let said: BTreeMap<&str, Said> = files
            .iter()
            .map(|file| (file.name.as_str(), said(file)))
            .collect();
        let mut is_good = self.apply_all(&files, &said).await;
        let failed = self.take_away(&files, &said).await;
        is_good &= self.clear_failures(&failed).await && failed.is_empty();
        // Nothing was taken away meanwhile.
        is_good && !files.iter().any(|file| file.is_young)
    }

    /// Once more as long as it helps: a file may need what another one makes.
    async fn apply_all(&mut self, files: &[File], said: &BTreeMap<&str, Said>) -> bool {
        let mut due: Vec<&File> = files
            .iter()
            .filter(|file| self.done.get(&file.name) != Some(&file.stamp))
            .collect();
        loop {
            let before = due.len();
            let mut left = Vec::new();
            for file in due {
                let failure = match &said[file.name.as_str()] {
                    Err(why) => Some(why.clone()),
                    Ok(_) if file.is_young => Some(String::new()),
                    Ok(wanted) => self.apply(file, wanted).await.err(),
                };
                match failure {
                    None => drop(self.done.insert(file.name.clone(), file.stamp)),
                    Some(why) => {
                        self.done.remove(&file.name);
                        left.push((file, why));
                    }
                }
            }
            if left.is_empty() || left.len() == before {
                for (file, why) in &left {
                    self.tell_failure(&file.name, why).await;
                }
                return left.is_empty();
            }
            due = left.into_iter().map(|(file, _)| file).collect();
        }
    }

    /// Everything of one file, what others need first; what fails stops nothing else.
    async fn apply(&mut self, file: &File, wanted: &[Wanted]) -> Result<(), String> {
        let mut failures = Vec::new();
        let mut record = self.record(&file.name);
        let before = record.clone();
        for one in wanted {
            if let Err(why) = self.apply_one(&mut record, one).await {
                failures.push(format!("document {}: {why}", one.document));
            }
        }
        if failures.is_empty() {
            record.failure.clear();
            if record != before {
                self.keep_record(record.clone()).await?;
                let message = format!("applied {}: {} objects", file.name, wanted.len());
                tracing::info!(
                    file = file.name,
                    objects = wanted.len(),
                    "applied a manifest"
                );
                self.event(&record, EventType::Normal, "AppliedManifest", &message);
            }
            return Ok(());
        }
        if record != before {
            self.keep_record(record).await?;
        }
        Err(failures.join("; "))
    }

    async fn apply_one(&mut self, record: &mut Record, one: &Wanted) -> Result<(), String> {
        let kind = self.applier.kind(&one.api_version, &one.kind).await?;
        let identity = one.identity(kind.is_namespaced);
        let found = self.applier.find(&kind, &identity).await?;
        let is_made = self.is_made(&identity, found.as_ref());
        // Before it is made: a crash must not leave what nobody knows of.
        if found.is_none() && !record.foresees(&identity) {
            record.put(Entry::new(identity.clone(), "", true));
            self.keep_record(record.clone()).await?;
        }
        let uid = self.applier.apply(&kind, &identity, &one.object).await?;
        record.put(Entry::new(identity, &uid, is_made));
        Ok(())
    }

    /// Whether it is there because of a file.
    fn is_made(&self, identity: &Identity, found: Option<&apply::Found>) -> bool {
        let Some(found) = found else { return true };
        let records = self.records.iter().flat_map(BTreeMap::values);
        let mut entries = records.filter_map(|record| record.entry(identity));
        entries.any(|entry| entry.is_made && found.is_of(entry))
    }

    /// What no file says any more. The files of which something could not be taken away.
    async fn take_away(&mut self, files: &[File], said: &BTreeMap<&str, Said>) -> BTreeSet<String> {
        let records = self.records.clone().unwrap_or_default();
        let namespaced = self.applier.namespaced();
        let mut failed = BTreeSet::new();
        for step in plan::plan(&records, files, said, &namespaced) {
            let mut record = step.record;
            let before = record.clone();
            let mut failures = Vec::new();
            for entry in step.surplus {
                match self.applier.remove(&entry).await {
                    Ok(()) => record.entries.retain(|one| one.identity != entry.identity),
                    Err(why) => failures.push(format!("{}: {why}", entry.identity)),
                }
            }
            let is_gone = step.is_gone && record.entries.is_empty();
            let kept = if is_gone {
                self.forget(&record).await
            } else if record != before {
                self.keep_record(record.clone()).await
            } else {
                Ok(())
            };
            failures.extend(kept.err());
            if !failures.is_empty() {
                self.tell_failure(&record.file, &failures.join("; ")).await;
                failed.insert(record.file);
            }
        }
        let names: BTreeSet<&str> = files.iter().map(|file| file.name.as_str()).collect();
        self.done.retain(|name, _| names.contains(name.as_str()));
        failed
    }

    /// Of the files that are applied as a whole, and of which nothing is left to be taken away.
    async fn clear_failures(&mut self, failed: &BTreeSet<String>) -> bool {
        let records = self.records.iter().flat_map(BTreeMap::values);
        let outlived = |record: &&Record| {
            let is_done = self.done.contains_key(&record.file);
            is_done && !record.failure.is_empty() && !failed.contains(&record.file)
        };
        let outlived: Vec<Record> = records.filter(outlived).cloned().collect();
        let mut is_good = true;
        for mut record in outlived {
            record.failure.clear();
            let file = record.file.clone();
            if let Err(error) = self.keep_record(record).await {
                tracing::warn!(file, error, "a failure that has passed is still told");
                is_good = false;
            }
        }
        is_good
    }

    fn record(&self, file: &str) -> Record {
        let known = self.records.as_ref().and_then(|records| records.get(file));
        known.cloned().unwrap_or_else(|| Record::of(file))
    }

    async fn keep_record(&mut self, record: Record) -> Result<(), String> {
        self.applier.keep(&record).await?;
        let records = self.records.get_or_insert_default();
        records.insert(record.file.clone(), record);
        Ok(())
    }

    async fn forget(&mut self, record: &Record) -> Result<(), String> {
        self.applier.forget(record).await?;
        self.records.get_or_insert_default().remove(&record.file);
        tracing::info!(file = record.file, "took away what a manifest had said");
        Ok(())
    }

    /// Once for each new reason; an empty one is no failure, but a file still being written.
    async fn tell_failure(&mut self, file: &str, why: &str) {
        let mut record = self.record(file);
        let end = why.floor_char_boundary(FAILURE_BYTES_MAX);
        let why = &why[..end];
        if why.is_empty() || record.failure == why {
            return;
        }
        tracing::error!(file, error = why, "a manifest is not applied as a whole");
        why.clone_into(&mut record.failure);
        if let Err(error) = self.keep_record(record.clone()).await {
            tracing::warn!(file, error, "the failure of a manifest was not kept");
        }
        let message = format!("{file}: {why}");
        self.event(&record, EventType::Warning, "FailedManifest", &message);
    }

    fn event(&self, record: &Record, kind: EventType, reason: &str, message: &str) {
        let object = reference(&record.to_config_map());
        self.recorder.event(&object, kind, reason, message);
    }
}

fn said(file: &File) -> Said {
    let text = file.text.as_ref().map_err(Clone::clone)?;
    document::read(&file.name, text)
}
