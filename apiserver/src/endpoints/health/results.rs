//! What the checks said each time that they were asked: `/metrics/slis`, under upstream's names.

use crate::metrics::text::{Format, Text};
use parking_lot::Mutex;
use std::collections::BTreeMap;

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
    pub fn add(&self, name: &'static str, endpoint: &'static str, passes: bool) {
        let mut all = self.0.lock();
        let counts = all.entry((name, endpoint)).or_default();
        counts.passes = passes;
        if passes {
            counts.passed += 1;
        } else {
            counts.failed += 1;
        }
    }

    pub fn text(&self, format: Format, started_seconds: f64) -> String {
        let mut text = Text::new(format);
        let all = self.0.lock().clone();
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
        text.sample(start, &[], started_seconds);
        text.into_string()
    }
}
