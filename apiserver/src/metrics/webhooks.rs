//! What is counted of admission webhooks, under upstream's names.

use super::text::Text;
use coracle_api::exposition::histogram::Durations;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upstream's buckets: a webhook has 30 seconds at most.
const SECONDS: &[f64] = &[0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
/// Names come from users, and codes from webhooks. What is more than that is not counted.
const SERIES_MAX: usize = 1000;
/// As upstream: greater codes are one.
const CODE_MAX: u16 = 600;

/// Whose fault it was that a request was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorType {
    CallingWebhook,
    Internal,
    /// Nobody's: the webhook said no.
    None,
}

impl ErrorType {
    fn as_str(self) -> &'static str {
        match self {
            Self::CallingWebhook => "calling_webhook_error",
            Self::Internal => "apiserver_internal_error",
            Self::None => "no_error",
        }
    }
}

/// How the asking of a webhook ended.
#[derive(Clone, Copy, Debug)]
pub struct Ending<'a> {
    pub name: &'a str,
    /// `admit` or `validating`.
    pub step: &'static str,
    pub operation: &'static str,
    pub code: u16,
    /// Where the request was stopped.
    pub error: Option<ErrorType>,
    pub elapsed: Duration,
}

/// Name, type and operation.
type Labels = (String, &'static str, &'static str);

#[derive(Debug, Default)]
pub struct Counts {
    durations: Series<(Labels, bool), Durations>,
    requests: Series<(Labels, u16, bool), AtomicU64>,
    rejections: Series<(Labels, ErrorType, u16), AtomicU64>,
    failed_open: Series<(String, &'static str), AtomicU64>,
}

#[derive(Debug)]
pub(super) struct Series<K, V>(RwLock<BTreeMap<K, Arc<V>>>);

impl<K, V> Default for Series<K, V> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<K: Ord + Clone, V> Series<K, V> {
    pub(super) fn all(&self) -> Vec<(K, Arc<V>)> {
        let all = self.0.read();
        all.iter()
            .map(|(key, value)| (key.clone(), Arc::clone(value)))
            .collect()
    }
}

impl<K: Ord, V> Series<K, V> {
    /// `None` when there is no room for a new one.
    pub(super) fn get(&self, key: K, new: impl FnOnce() -> V) -> Option<Arc<V>> {
        if let Some(known) = self.0.read().get(&key) {
            return Some(Arc::clone(known));
        }
        let mut all = self.0.write();
        let has_room = all.len() < SERIES_MAX || all.contains_key(&key);
        has_room.then(|| Arc::clone(all.entry(key).or_insert_with(|| Arc::new(new()))))
    }
}

impl<K: Ord> Series<K, AtomicU64> {
    pub(super) fn count(&self, key: K) {
        if let Some(counter) = self.get(key, AtomicU64::default) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Counts {
    pub fn ended(&self, ending: &Ending<'_>) {
        let labels = || (ending.name.to_owned(), ending.step, ending.operation);
        let (code, is_rejected) = (ending.code.min(CODE_MAX), ending.error.is_some());
        let durations = || Durations::new(SECONDS);
        if let Some(taken) = self.durations.get((labels(), is_rejected), durations) {
            taken.add(ending.elapsed);
        }
        self.requests.count((labels(), code, is_rejected));
        if let Some(error) = ending.error {
            self.rejections.count((labels(), error, code));
        }
    }

    /// A webhook failed, and its request went on.
    pub fn failed_open(&self, name: &str, step: &'static str) {
        self.failed_open.count((name.to_owned(), step));
    }

    pub fn text(&self, text: &mut Text) {
        let name = "apiserver_admission_webhook_admission_duration_seconds";
        let help = "Admission webhook latency histogram in seconds, identified by name and broken \
                    out for each operation and type (validate or admit).";
        text.family(name, "histogram", help);
        for ((of, is_rejected), durations) in &*self.durations.0.read() {
            let rejected = is_rejected.to_string();
            let mut labels = named(of).to_vec();
            labels.push(("rejected", &rejected));
            durations.text(text, name, &labels);
        }
        let name = "apiserver_admission_webhook_request_total";
        let help = "Admission webhook requests, by name, operation, type, code and whether the \
                    request was rejected.";
        text.family(name, "counter", help);
        for ((of, code, is_rejected), count) in &*self.requests.0.read() {
            let (code, rejected) = (code.to_string(), is_rejected.to_string());
            let mut labels = named(of).to_vec();
            labels.extend([("code", code.as_str()), ("rejected", &rejected)]);
            text.sample(name, &labels, count.load(Ordering::Relaxed));
        }
        let name = "apiserver_admission_webhook_rejection_count";
        let help = "Requests that a webhook, or the failure of one, stopped.";
        text.family(name, "counter", help);
        for ((of, error, code), count) in &*self.rejections.0.read() {
            let code = code.to_string();
            let mut labels = named(of).to_vec();
            labels.extend([("error_type", error.as_str()), ("rejection_code", &code)]);
            text.sample(name, &labels, count.load(Ordering::Relaxed));
        }
        let name = "apiserver_admission_webhook_fail_open_count";
        let help = "Requests that went on although a webhook failed.";
        text.family(name, "counter", help);
        for ((of, step), count) in &*self.failed_open.0.read() {
            let labels = [("name", of.as_str()), ("type", step)];
            text.sample(name, &labels, count.load(Ordering::Relaxed));
        }
    }
}

fn named((name, step, operation): &Labels) -> [(&'static str, &str); 3] {
    [("name", name), ("operation", operation), ("type", step)]
}
