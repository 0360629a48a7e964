//! What is counted of requests. Labels are rows of the catalogue, never text of a client: the
//! number of series is bounded.

use super::text::Text;
use crate::request_info::RequestInfo;
use coracle_api::catalogue;
use coracle_api::exposition::histogram::{Durations, Sizes};
use coracle_api::resource::Resource;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Upstream's buckets.
const SECONDS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];
const SLI_SECONDS: &[f64] = &[
    0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0,
    30.0, 45.0, 60.0,
];
const RESPONSE_BYTES: &[f64] = &[1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
const EVENT_BYTES: &[f64] = &[
    1024.0, 2048.0, 4096.0, 8192.0, 16_384.0, 32_768.0, 65_536.0, 131_072.0,
];
/// Answers by which the server, and not the request, is at its end.
const TERMINATIONS: [u16; 3] = [429, 503, 504];

/// Which requests are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series {
    verb: &'static str,
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    subresource: &'static str,
    scope: &'static str,
    is_dry_run: bool,
}

impl Series {
    fn of(info: &RequestInfo, row: Option<&Resource>, is_dry_run: bool) -> Self {
        let none = Self {
            verb: verb(&info.verb, info.is_resource_request),
            group: "",
            version: "",
            resource: "",
            subresource: "",
            scope: "",
            is_dry_run: false,
        };
        let Some(row) = row else {
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
            is_dry_run,
            ..none
        }
    }

    fn is_long_running(&self) -> bool {
        let streams = ["log", "exec", "attach", "portforward", "proxy"];
        self.verb == "WATCH" || streams.contains(&self.subresource)
    }

    fn is_read(&self) -> bool {
        matches!(self.verb, "GET" | "LIST" | "WATCH" | "HEAD")
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

    fn dry_run(&self) -> (&'static str, &'static str) {
        ("dry_run", if self.is_dry_run { "All" } else { "" })
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

#[derive(Debug)]
struct Counts {
    codes: Mutex<BTreeMap<u16, u64>>,
    durations: Durations,
    sli_durations: Durations,
    response_sizes: Sizes,
    long_running: AtomicI64,
    events: AtomicU64,
    event_sizes: Sizes,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            codes: Mutex::default(),
            durations: Durations::new(SECONDS),
            sli_durations: Durations::new(SLI_SECONDS),
            response_sizes: Sizes::new(RESPONSE_BYTES),
            long_running: AtomicI64::new(0),
            events: AtomicU64::new(0),
            event_sizes: Sizes::new(EVENT_BYTES),
        }
    }
}

#[derive(Debug, Default)]
pub struct Requests {
    series: RwLock<BTreeMap<Series, Arc<Counts>>>,
    reading: AtomicI64,
    writing: AtomicI64,
}

/// One request under way. Dropped without an end, the client went away.
#[derive(Debug)]
pub struct Recording {
    requests: Arc<Requests>,
    series: Series,
    counts: Arc<Counts>,
}

/// One stream under way.
#[derive(Debug)]
pub struct LongRunning(Arc<Counts>);

impl LongRunning {
    /// Counts events of a watch on their way to the client.
    pub fn sent(&self, events: usize, bytes: usize) {
        let Some(each) = bytes.checked_div(events) else {
            return;
        };
        self.0.events.fetch_add(events as u64, Ordering::Relaxed);
        for _ in 0..events {
            self.0.event_sizes.add(each as u64);
        }
    }
}

impl Drop for LongRunning {
    fn drop(&mut self) {
        self.0.long_running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Requests {
    pub fn begin(
        self: &Arc<Self>,
        info: &RequestInfo,
        row: Option<&Resource>,
        is_dry_run: bool,
    ) -> Recording {
        let series = Series::of(info, row, is_dry_run);
        self.in_flight(&series).fetch_add(1, Ordering::Relaxed);
        Recording {
            requests: Arc::clone(self),
            series,
            counts: self.counts(series),
        }
    }

    /// Counts a stream until what is given back is dropped.
    pub fn long_running(&self, info: &RequestInfo, row: &Resource) -> LongRunning {
        let counts = self.counts(Series::of(info, Some(row), false));
        counts.long_running.fetch_add(1, Ordering::Relaxed);
        LongRunning(counts)
    }

    fn counts(&self, series: Series) -> Arc<Counts> {
        if let Some(known) = self.series.read().get(&series) {
            return Arc::clone(known);
        }
        Arc::clone(self.series.write().entry(series).or_default())
    }

    fn in_flight(&self, series: &Series) -> &AtomicI64 {
        if series.is_read() {
            &self.reading
        } else {
            &self.writing
        }
    }

    pub fn text(&self, text: &mut Text) {
        let series = self.series.read();
        let total = "apiserver_request_total";
        text.family(total, "counter", "Counter of apiserver requests.");
        for (series, counts) in series.iter() {
            for (code, count) in counts.codes.lock().iter() {
                let code = code.to_string();
                let mut labels = vec![("code", code.as_str()), series.dry_run()];
                labels.extend(series.labels());
                text.sample(total, &labels, count);
            }
        }
        deprecated_text(text, &series);
        histograms(text, &series);
        in_flight_text(text, &self.writing, &self.reading);
        let long = "apiserver_longrunning_requests";
        text.family(long, "gauge", "Streams under way.");
        for (series, counts) in series.iter().filter(|(series, _)| series.is_long_running()) {
            let running = counts.long_running.load(Ordering::Relaxed);
            text.sample(long, &series.labels(), running);
        }
        let terminations = "apiserver_request_terminations_total";
        let help = "Requests that the server ended to protect itself.";
        text.family(terminations, "counter", help);
        for (series, counts) in series.iter() {
            for (code, count) in counts.codes.lock().iter() {
                if TERMINATIONS.contains(code) {
                    let code = code.to_string();
                    let mut labels = vec![("code", code.as_str())];
                    labels.extend(series.labels());
                    text.sample(terminations, &labels, count);
                }
            }
        }
        watch_text(text, &series);
    }
}

/// One for each deprecated API that somebody asked for. None of them has a release in which it
/// ends.
fn deprecated_text(text: &mut Text, all: &BTreeMap<Series, Arc<Counts>>) {
    let asked = all.iter().filter(|(series, counts)| {
        let row = catalogue::find(series.group, series.version, series.resource);
        let is_deprecated = row.is_some_and(|row| row.rules.deprecation().is_some());
        is_deprecated && !counts.codes.lock().is_empty()
    });
    let asked: BTreeSet<[(&str, &str); 5]> = asked
        .map(|(series, _)| {
            [
                ("group", series.group),
                ("removed_release", ""),
                ("resource", series.resource),
                ("subresource", series.subresource),
                ("version", series.version),
            ]
        })
        .collect();
    let name = "apiserver_requested_deprecated_apis";
    let help = "Gauge of deprecated APIs that have been requested, broken out by API group, \
                version, resource, subresource, and removed_release.";
    text.family(name, "gauge", help);
    for labels in asked {
        text.sample(name, &labels, 1);
    }
}

fn in_flight_text(text: &mut Text, writing: &AtomicI64, reading: &AtomicI64) {
    let name = "apiserver_current_inflight_requests";
    text.family(name, "gauge", "Requests worked on right now, by kind.");
    for (kind, count) in [("mutating", writing), ("readOnly", reading)] {
        let count = count.load(Ordering::Relaxed);
        text.sample(name, &[("request_kind", kind)], count);
    }
}

fn histograms(text: &mut Text, all: &BTreeMap<Series, Arc<Counts>>) {
    let duration = "apiserver_request_duration_seconds";
    text.family(
        duration,
        "histogram",
        "Response latency distribution in seconds.",
    );
    for (series, counts) in all {
        if counts.durations.count() > 0 {
            let mut labels = vec![series.dry_run()];
            labels.extend(series.labels());
            counts.durations.text(text, duration, &labels);
        }
    }
    let sli = "apiserver_request_sli_duration_seconds";
    let help = "Response latency distribution in seconds, without the time spent in queues.";
    text.family(sli, "histogram", help);
    for (series, counts) in all {
        if counts.sli_durations.count() > 0 {
            counts.sli_durations.text(text, sli, &series.labels());
        }
    }
    let sizes = "apiserver_response_sizes";
    text.family(sizes, "histogram", "Response size distribution in bytes.");
    for (series, counts) in all {
        if counts.response_sizes.count() > 0 {
            counts.response_sizes.text(text, sizes, &series.labels());
        }
    }
}

/// By resource alone: watches of all scopes together.
fn watch_text(text: &mut Text, all: &BTreeMap<Series, Arc<Counts>>) {
    let watches = || all.iter().filter(|(series, _)| series.verb == "WATCH");
    let labels = |series: &Series| {
        [
            ("group", series.group),
            ("resource", series.resource),
            ("version", series.version),
        ]
    };
    let mut sums = BTreeMap::<_, u64>::new();
    for (series, counts) in watches() {
        *sums.entry(labels(series)).or_default() += counts.events.load(Ordering::Relaxed);
    }
    let events = "apiserver_watch_events_total";
    text.family(events, "counter", "Number of events sent in watch clients.");
    for (labels, count) in sums {
        text.sample(events, &labels, count);
    }
    let sizes = "apiserver_watch_events_sizes";
    text.family(
        sizes,
        "histogram",
        "Watch event size distribution in bytes.",
    );
    for (series, counts) in watches().filter(|(_, counts)| counts.event_sizes.count() > 0) {
        let mut own = labels(series).to_vec();
        own.push(("scope", series.scope));
        counts.event_sizes.text(text, sizes, &own);
    }
}

impl Recording {
    /// The answer's head is ready; `size` is that of its body, where it is known.
    pub fn finish(self, code: u16, elapsed: Duration, waited: Duration, size: Option<u64>) {
        *self.counts.codes.lock().entry(code).or_default() += 1;
        if self.series.is_long_running() {
            return;
        }
        self.counts.durations.add(elapsed);
        self.counts
            .sli_durations
            .add(elapsed.saturating_sub(waited));
        if let (true, Some(size)) = (self.series.is_read(), size) {
            self.counts.response_sizes.add(size);
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let in_flight = self.requests.in_flight(&self.series);
        in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
