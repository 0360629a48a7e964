//! What probes answered, counted for `/metrics/probes`. A probe's counts end with the probe.

use super::Kind;
use super::ask::Answer;
use coracle_api::exposition::Text;
use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Upstream's buckets, in seconds.
const BOUNDS: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// In the order of the labels: container, namespace, pod, its uid, the kind of probe.
type Key = [String; 5];

/// Of all probes of the node. Cheap to clone; clones share.
#[derive(Clone, Debug, Default)]
pub struct Tallies(Arc<Mutex<BTreeMap<Key, Counts>>>);

#[derive(Clone, Debug, Default)]
struct Counts {
    successful: u64,
    failed: u64,
    /// How long successes took.
    buckets: [u64; BOUNDS.len() + 1],
    sum_seconds: f64,
}

/// Of one probe; forgotten when it is dropped.
#[derive(Debug)]
pub struct Tally {
    all: Tallies,
    key: Key,
}

impl Tallies {
    pub(super) fn of(&self, pod: &Pod, container: &str, kind: Kind) -> Tally {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let meta = &pod.metadata;
        let key = [
            container.to_owned(),
            text(&meta.namespace),
            text(&meta.name),
            text(&meta.uid),
            kind.title().to_owned(),
        ];
        let all = self.clone();
        Tally { all, key }
    }

    pub fn text(&self, text: &mut Text) {
        let all = self.0.lock();
        if all.is_empty() {
            return;
        }
        let name = "prober_probe_duration_seconds";
        let help = "[ALPHA] Duration in seconds for a probe response.";
        text.family(name, "histogram", help);
        for (key, counts) in all.iter().filter(|(_, counts)| counts.successful > 0) {
            let [container, namespace, pod, _, kind] = key;
            let labels = [
                ("container", container.as_str()),
                ("namespace", namespace),
                ("pod", pod),
                ("probe_type", kind),
            ];
            let bounds = BOUNDS.into_iter().zip(counts.buckets);
            text.histogram(name, &labels, bounds, counts.sum_seconds, counts.successful);
        }
        let name = "prober_probe_total";
        let help = "[BETA] Cumulative number of a liveness, readiness or startup probe for a \
                    container by result.";
        text.family(name, "counter", help);
        for ([container, namespace, pod, uid, kind], counts) in all.iter() {
            for (result, count) in [("failed", counts.failed), ("successful", counts.successful)] {
                let labels = [
                    ("container", container.as_str()),
                    ("namespace", namespace),
                    ("pod", pod),
                    ("pod_uid", uid),
                    ("probe_type", kind),
                    ("result", result),
                ];
                if count > 0 {
                    text.sample(name, &labels, count);
                }
            }
        }
    }
}

impl Tally {
    pub(super) fn add(&self, answer: &Answer, took: Duration) {
        let mut all = self.all.0.lock();
        let counts = all.entry(self.key.clone()).or_default();
        if !matches!(answer, Answer::Success) {
            counts.failed += 1;
            return;
        }
        let seconds = took.as_secs_f64();
        counts.successful += 1;
        counts.sum_seconds += seconds;
        counts.buckets[BOUNDS.partition_point(|bound| *bound < seconds)] += 1;
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests;
