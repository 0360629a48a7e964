//! What is counted about requests, and `/metrics` in Prometheus' text format, with upstream's
//! names.
//!
//! Labels are rows of the catalogue, never text of a client: the number of series is bounded.

pub mod histogram; // Histograms without a lock.
mod process; // What the kernel says about this process.
pub mod text; // The text format.

use crate::audit::Audit;
use crate::fairness::Fairness;
use crate::request_info::RequestInfo;
use coracle_api::catalogue;
use coracle_store::Store;
use jiff::Timestamp;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;
use text::Text;

pub use text::CONTENT_TYPE as TEXT_TYPE;

/// Upper bounds of the buckets of durations, in milliseconds: upstream's.
const BUCKETS_MS: [u64; 23] = [
    5, 25, 50, 100, 200, 400, 600, 800, 1000, 1250, 1500, 2000, 3000, 4000, 5000, 6000, 8000,
    10_000, 15_000, 20_000, 30_000, 45_000, 60_000,
];

/// Which requests are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    verb: &'static str,
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    subresource: &'static str,
    scope: &'static str,
}

impl Series {
    fn of(info: &RequestInfo) -> Self {
        let none = Self {
            verb: verb(&info.verb, info.is_resource_request),
            group: "",
            version: "",
            resource: "",
            subresource: "",
            scope: "",
        };
        let Some(row) = catalogue::find(&info.group, &info.version, &info.resource) else {
            return none;
        };
        let subresource = row.subresource(&info.subresource);
        let scope = match (info.name.is_empty(), info.namespace.is_empty()) {
            (false, _) => "resource",
            (true, false) => "namespace",
            (true, true) => "cluster",
        };
        Self {
            group: row.group,
            version: row.version,
            resource: row.plural,
            subresource: subresource.map_or("", |one| one.name),
            scope,
            ..none
        }
    }

    fn is_long_running(&self) -> bool {
        self.verb == "WATCH" || matches!(self.subresource, "log" | "exec" | "attach")
    }

    fn labels(&self) -> [(&'static str, &'static str); 7] {
        [
            ("component", "apiserver"),
            ("group", self.group),
            ("resource", self.resource),
            ("scope", self.scope),
            ("subresource", self.subresource),
            ("verb", self.verb),
            ("version", self.version),
        ]
    }
}

fn verb(verb: &str, is_resource: bool) -> &'static str {
    match verb {
        "list" => "LIST",
        "watch" => "WATCH",
        "deletecollection" => "DELETECOLLECTION",
        "get" => "GET",
        "create" | "post" => "POST",
        "update" | "put" => "PUT",
        "patch" => "PATCH",
        "delete" => "DELETE",
        "head" if !is_resource => "HEAD",
        _ => "other",
    }
}

#[derive(Clone, Debug, Default)]
struct Durations {
    /// How many ended within each bound and not within the one before.
    buckets: [u64; BUCKETS_MS.len()],
    count: u64,
    sum: Duration,
}

impl Durations {
    fn add(&mut self, elapsed: Duration) {
        let place = BUCKETS_MS
            .iter()
            .position(|bound| elapsed <= Duration::from_millis(*bound));
        if let Some(place) = place {
            self.buckets[place] += 1;
        }
        self.count += 1;
        self.sum += elapsed;
    }
}

#[derive(Debug, Default)]
struct Requests {
    total: BTreeMap<(Series, u16), u64>,
    durations: BTreeMap<Series, Durations>,
    long_running: BTreeMap<Series, Arc<AtomicI64>>,
}

#[derive(Debug)]
pub struct Metrics {
    started: Timestamp,
    requests: Mutex<Requests>,
    reading: AtomicI64,
    writing: AtomicI64,
    panics: AtomicU64,
    audit: OnceLock<Arc<Audit>>,
}

/// One request under way. Dropped without an end, the client went away.
#[derive(Debug)]
pub struct Recording {
    metrics: Arc<Metrics>,
    series: Series,
}

/// One stream under way.
#[derive(Debug)]
pub struct LongRunning(Arc<AtomicI64>);

impl Drop for LongRunning {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    pub fn new(started: Timestamp) -> Self {
        Self {
            started,
            requests: Mutex::default(),
            reading: AtomicI64::new(0),
            writing: AtomicI64::new(0),
            panics: AtomicU64::new(0),
            audit: OnceLock::new(),
        }
    }

    /// Whose counts are shown too.
    pub fn set_audit(&self, audit: Option<Arc<Audit>>) {
        if let Some(audit) = audit {
            drop(self.audit.set(audit));
        }
    }

    pub fn started(&self) -> Timestamp {
        self.started
    }

    pub fn begin(self: &Arc<Self>, info: &RequestInfo) -> Recording {
        let series = Series::of(info);
        self.in_flight(&series).fetch_add(1, Ordering::Relaxed);
        Recording {
            metrics: Arc::clone(self),
            series,
        }
    }

    /// Counts a stream until what is given back is dropped.
    pub fn long_running(&self, info: &RequestInfo) -> LongRunning {
        let series = Series::of(info);
        let mut requests = self.requests.lock();
        let running = Arc::clone(requests.long_running.entry(series).or_default());
        running.fetch_add(1, Ordering::Relaxed);
        LongRunning(running)
    }

    pub fn count_panic(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    fn in_flight(&self, series: &Series) -> &AtomicI64 {
        match series.verb {
            "GET" | "LIST" | "WATCH" | "HEAD" => &self.reading,
            _ => &self.writing,
        }
    }

    /// All metrics as text.
    pub fn text(&self, store: &Store, nodes_connected: usize, fairness: &Fairness) -> String {
        let mut text = Text::default();
        self.request_text(&mut text);
        fairness.text(&mut text);
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
        process::text(&mut text, self.started);
        text.into_string()
    }

    fn request_text(&self, text: &mut Text) {
        let requests = self.requests.lock();
        let total = "apiserver_request_total";
        text.family(total, "counter", "Counter of apiserver requests.");
        for ((series, code), count) in &requests.total {
            let code = code.to_string();
            let mut labels = vec![("code", code.as_str())];
            labels.extend(series.labels());
            text.sample(total, &labels, count);
        }
        let duration = "apiserver_request_duration_seconds";
        let help = "Response latency distribution in seconds.";
        text.family(duration, "histogram", help);
        for (series, durations) in &requests.durations {
            let bounds = BUCKETS_MS.iter().map(|ms| *ms as f64 / 1000.0);
            let buckets = bounds.zip(durations.buckets);
            let (sum, count) = (durations.sum.as_secs_f64(), durations.count);
            text.histogram(duration, &series.labels(), buckets, sum, count);
        }
        let in_flight = "apiserver_current_inflight_requests";
        text.family(in_flight, "gauge", "Requests worked on right now, by kind.");
        for (kind, count) in [("mutating", &self.writing), ("readOnly", &self.reading)] {
            let count = count.load(Ordering::Relaxed);
            text.sample(in_flight, &[("request_kind", kind)], count);
        }
        let long = "apiserver_longrunning_requests";
        text.family(long, "gauge", "Streams under way.");
        for (series, count) in &requests.long_running {
            text.sample(long, &series.labels(), count.load(Ordering::Relaxed));
        }
        let panics = "coracle_request_panics_total";
        text.family(panics, "counter", "Requests that ended in a panic.");
        text.sample(panics, &[], self.panics.load(Ordering::Relaxed));
    }
}

impl Recording {
    /// The answer's head is ready.
    pub fn finish(self, code: u16, elapsed: Duration) {
        let mut requests = self.metrics.requests.lock();
        *requests.total.entry((self.series, code)).or_default() += 1;
        if !self.series.is_long_running() {
            let durations = requests.durations.entry(self.series).or_default();
            durations.add(elapsed);
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let in_flight = self.metrics.in_flight(&self.series);
        in_flight.fetch_sub(1, Ordering::Relaxed);
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
