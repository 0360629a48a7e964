//! What the checks said each time that they were asked: `/metrics/slis`, under upstream's names.

use super::{Format, Text};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One check of one endpoint.
type Check = (&'static str, &'static str);

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    passes: bool,
    passed: u64,
    failed: u64,
}

/// Names are those of checks, of which there are a few.
#[derive(Debug, Default)]
pub struct Results(Mutex<BTreeMap<Check, Counts>>);

impl Results {
    /// Counts are whole, whoever panics beside them.
    fn all(&self) -> MutexGuard<'_, BTreeMap<Check, Counts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, name: &'static str, endpoint: &'static str, passes: bool) {
        let mut all = self.all();
        let counts = all.entry((name, endpoint)).or_default();
        counts.passes = passes;
        if passes {
            counts.passed += 1;
        } else {
            counts.failed += 1;
        }
    }

    pub fn text(&self, format: Format, started: Timestamp) -> String {
        let mut text = Text::new(format);
        let all = self.all().clone();
        let newest = "kubernetes_healthcheck";
        let help = "This metric records the result of a single healthcheck.";
        text.family(newest, "gauge", help);
        for ((name, endpoint), counts) in &all {
            let labels = [("name", *name), ("type", *endpoint)];
            text.sample(newest, &labels, u8::from(counts.passes));
        }
        let total = "kubernetes_healthchecks_total";
        let help = "This metric records the results of all healthcheck.";
        text.family(total, "counter", help);
        for ((name, endpoint), counts) in &all {
            for (status, count) in [("error", counts.failed), ("success", counts.passed)] {
                let labels = [("name", *name), ("status", status), ("type", *endpoint)];
                // As upstream: what never was is not shown.
                if count > 0 {
                    text.sample(total, &labels, count);
                }
            }
        }
        let start = "process_start_time_seconds";
        let help = "Start time of the process since unix epoch in seconds.";
        text.family(start, "gauge", help);
        text.sample(start, &[], started.as_millisecond() as f64 / 1000.0);
        text.into_string()
    }
}
