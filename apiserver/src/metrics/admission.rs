//! How long admission took, plugin by plugin and step by step, under upstream's names.

use super::text::Text;
use crate::admission::Operation;
use coracle_api::exposition::histogram::Durations;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Upstream's buckets.
const SECONDS: &[f64] = &[0.005, 0.025, 0.1, 0.5, 1.0, 2.5];

/// What a plugin, or all of them together, may do with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Admit,
    Validate,
}

impl Step {
    fn as_str(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Validate => "validate",
        }
    }
}

/// What is counted together. The number of series is bounded by that of plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    /// Empty for a step as a whole.
    plugin: &'static str,
    step: Step,
    operation: &'static str,
    is_rejected: bool,
}

#[derive(Debug, Default)]
pub struct Times(RwLock<BTreeMap<Series, Arc<Durations>>>);

impl Times {
    /// Counts what one plugin took; with no name, what all did.
    pub fn add(
        &self,
        plugin: &'static str,
        step: Step,
        operation: Operation,
        is_rejected: bool,
        elapsed: Duration,
    ) {
        let series = Series {
            plugin,
            step,
            operation: operation.as_str(),
            is_rejected,
        };
        if let Some(known) = self.0.read().get(&series) {
            return known.add(elapsed);
        }
        let mut all = self.0.write();
        let new = all
            .entry(series)
            .or_insert_with(|| Arc::new(Durations::new(SECONDS)));
        new.add(elapsed);
    }

    pub fn text(&self, text: &mut Text) {
        let all = self.0.read();
        let controller = "apiserver_admission_controller_admission_duration_seconds";
        let help = "Admission controller latency histogram in seconds, identified by name and \
                    broken out for each operation and type (validate or admit).";
        text.family(controller, "histogram", help);
        for (series, durations) in all.iter().filter(|(series, _)| !series.plugin.is_empty()) {
            let mut labels = vec![("name", series.plugin)];
            labels.extend(series.labels());
            durations.text(text, controller, &labels);
        }
        let step = "apiserver_admission_step_admission_duration_seconds";
        let help = "Admission sub-step latency histogram in seconds, broken out for each \
                    operation and step type (validate or admit).";
        text.family(step, "histogram", help);
        for (series, durations) in all.iter().filter(|(series, _)| series.plugin.is_empty()) {
            durations.text(text, step, &series.labels());
        }
    }
}

impl Series {
    fn labels(&self) -> [(&'static str, &'static str); 3] {
        let rejected = if self.is_rejected { "true" } else { "false" };
        [
            ("operation", self.operation),
            ("rejected", rejected),
            ("type", self.step.as_str()),
        ]
    }
}
