//! What the loop knows of its jobs that the cache does not show, or not yet.
//!
//! Lost on a restart, which costs a wait for a failed pod's replacement, and nothing else.
//! Bounded by the jobs there are: what belongs to a job goes with it.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;

use super::backoff::Record;

/// By uid of the job.
#[derive(Debug, Default)]
pub(super) struct Memory {
    jobs: Mutex<HashMap<String, Remembered>>,
}

#[derive(Debug, Default)]
struct Remembered {
    backoff: Record,
    /// Uids of pods whose finalizer is being removed, until the cache shows it.
    releasing: HashSet<String>,
    /// The resource version of the last status written.
    written: u64,
}

impl Memory {
    pub(super) fn backoff(&self, job: &str) -> Record {
        let jobs = self.jobs.lock();
        jobs.get(job).map(|known| known.backoff).unwrap_or_default()
    }

    pub(super) fn releasing(&self, job: &str) -> HashSet<String> {
        let jobs = self.jobs.lock();
        let known = jobs.get(job).map(|known| known.releasing.clone());
        known.unwrap_or_default()
    }

    /// Whether the cache shows the last status that was written: an older one would count pods
    /// short that have lost their finalizers since, and make up for them.
    pub(super) fn is_current(&self, job: &str, resource_version: Option<&str>) -> bool {
        let jobs = self.jobs.lock();
        let written = jobs.get(job).map_or(0, |known| known.written);
        version(resource_version).is_none_or(|shown| shown >= written)
    }

    pub(super) fn wrote(&self, job: &str, resource_version: Option<&str>) {
        let mut jobs = self.jobs.lock();
        let known = jobs.entry(job.to_owned()).or_default();
        known.written = version(resource_version).unwrap_or(0).max(known.written);
    }

    pub(super) fn failed(&self, job: &str, backoff: Record) {
        self.jobs.lock().entry(job.to_owned()).or_default().backoff = backoff;
    }

    pub(super) fn release(&self, job: &str, pods: impl IntoIterator<Item = String>) {
        let mut jobs = self.jobs.lock();
        jobs.entry(job.to_owned())
            .or_default()
            .releasing
            .extend(pods);
    }

    /// A pod was seen without the finalizer, or it was not removed after all.
    pub(super) fn released(&self, job: &str, pod: &str) {
        if let Some(known) = self.jobs.lock().get_mut(job) {
            known.releasing.remove(pod);
        }
    }

    pub(super) fn forget(&self, job: &str) {
        self.jobs.lock().remove(job);
    }
}

/// Of a server whose versions are no numbers nothing can be said.
fn version(text: Option<&str>) -> Option<u64> {
    text?.parse().ok()
}
