//! What is counted about requests, and `/metrics` in Prometheus' text format, with upstream's
//! names.

mod access; // Who asked, and whether they might.
pub mod admission; // How long admission took.
pub mod policies; // What is counted of admission policies.
mod process; // What the kernel says about this process.
mod requests; // What is counted of requests.
pub mod text; // The text format.
pub mod webhooks; // What is counted of admission webhooks.

use crate::audit::Audit;
use crate::authorize::Authorizer;
use crate::fairness::Fairness;
use crate::request_info::RequestInfo;
use access::Access;
use admission::Times;
use coracle_api::resource::Resource;
use coracle_store::Store;
use jiff::Timestamp;
use parking_lot::Mutex;
use requests::Requests;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use text::{Format, Text};

pub use requests::{LongRunning, Recording};

pub struct Metrics {
    started: Timestamp,
    requests: Arc<Requests>,
    pub access: Access,
    panics: AtomicU64,
    audit: OnceLock<Arc<Audit>>,
    admission: OnceLock<Arc<Times>>,
    webhooks: OnceLock<Arc<webhooks::Counts>>,
    policies: OnceLock<Arc<policies::Counts>>,
    authorizer: OnceLock<Arc<Authorizer>>,
    others: Mutex<Vec<Others>>,
}

/// Writes the metrics of another part of the process.
pub type Others = Box<dyn Fn(&mut Text) + Send + Sync>;

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics")
            .field("started", &self.started)
            .finish_non_exhaustive()
    }
}

impl Metrics {
    pub fn new(started: Timestamp) -> Self {
        Self {
            started,
            requests: Arc::default(),
            access: Access::default(),
            panics: AtomicU64::new(0),
            audit: OnceLock::new(),
            admission: OnceLock::new(),
            webhooks: OnceLock::new(),
            policies: OnceLock::new(),
            authorizer: OnceLock::new(),
            others: Mutex::default(),
        }
    }

    /// What is counted elsewhere and shown here too.
    pub fn show_too(&self, audit: Option<Arc<Audit>>, access: &crate::access::Access) {
        if let Some(audit) = audit {
            drop(self.audit.set(audit));
        }
        drop(self.admission.set(access.admission.times()));
        drop(self.webhooks.set(access.admission.webhooks.counts()));
        drop(self.policies.set(access.admission.policies.counts()));
        drop(self.authorizer.set(Arc::clone(&access.authorizer)));
    }

    pub fn show_others(&self, others: Others) {
        self.others.lock().push(others);
    }

    pub fn started(&self) -> Timestamp {
        self.started
    }

    /// `row` is the one that the request names, if there is one.
    pub fn begin(&self, info: &RequestInfo, row: Option<&Resource>, is_dry_run: bool) -> Recording {
        self.requests.begin(info, row, is_dry_run)
    }

    /// Counts a stream until what is given back is dropped.
    pub fn long_running(&self, info: &RequestInfo, row: &Resource) -> LongRunning {
        self.requests.long_running(info, row)
    }

    pub fn count_panic(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    /// All metrics as text.
    pub fn text(
        &self,
        format: Format,
        store: &Store,
        nodes_connected: usize,
        fairness: &Fairness,
    ) -> String {
        let mut text = Text::new(format);
        self.requests.text(&mut text);
        self.access.text(&mut text);
        if let Some(authorizer) = self.authorizer.get() {
            authorizer.counts.text(&mut text);
        }
        let panics = "coracle_request_panics_total";
        let help = "Requests that ended in a panic.";
        text.family(panics, "counter", help);
        text.sample(panics, &[], self.panics.load(Ordering::Relaxed));
        fairness.text(&mut text);
        if let Some(times) = self.admission.get() {
            times.text(&mut text);
        }
        if let Some(webhooks) = self.webhooks.get() {
            webhooks.text(&mut text);
        }
        if let Some(policies) = self.policies.get() {
            policies.text(&mut text);
        }
        if let Some(audit) = self.audit.get() {
            audit.text(&mut text);
        }
        store_text(&mut text, store);
        text.family(
            "coracle_node_tunnels",
            "gauge",
            "Nodes whose agent holds a connection to this server.",
        );
        text.sample("coracle_node_tunnels", &[], nodes_connected);
        for others in &*self.others.lock() {
            others(&mut text);
        }
        process::text(&mut text, self.started);
        text.into_string()
    }
}

fn store_text(text: &mut Text, store: &Store) {
    let objects = "apiserver_storage_objects";
    text.family(objects, "gauge", "Number of stored objects, by resource.");
    for (partition, count) in store.partitions() {
        // As upstream writes a resource with its group: `deployments.apps`.
        let resource = match partition.split_once('/') {
            Some(("", plural)) => plural.to_owned(),
            Some((group, plural)) => format!("{plural}.{group}"),
            None => partition.to_string(),
        };
        text.sample(objects, &[("resource", &resource)], count);
    }
    let objects = "apiserver_resource_objects";
    text.family(
        objects,
        "gauge",
        "Number of stored objects, by group and resource.",
    );
    for (partition, count) in store.partitions() {
        if let Some((group, plural)) = partition.split_once('/') {
            text.sample(objects, &[("group", group), ("resource", plural)], count);
        }
    }
    let stats = store.stats();
    let gauges: [(&str, &str, u64); 4] = [
        (
            "apiserver_storage_size_bytes",
            "Bytes of the store on disk.",
            stats.disk_bytes,
        ),
        (
            "coracle_store_revision",
            "Newest revision.",
            stats.revision.0,
        ),
        (
            "coracle_store_compacted_revision",
            "History begins after this.",
            stats.compacted.0,
        ),
        (
            "coracle_store_watchers",
            "Watchers of the store.",
            stats.watchers as u64,
        ),
    ];
    for (name, help, value) in gauges {
        text.family(name, "gauge", help);
        text.sample(name, &[], value);
    }
    let counters: [(&str, &str, u64); 2] = [
        (
            "coracle_store_writes_total",
            "Writes committed.",
            stats.writes,
        ),
        (
            "coracle_store_flushes_total",
            "Flushes to disk.",
            stats.flushes,
        ),
    ];
    for (name, help, value) in counters {
        text.family(name, "counter", help);
        text.sample(name, &[], value);
    }
}

#[cfg(test)]
mod tests;
