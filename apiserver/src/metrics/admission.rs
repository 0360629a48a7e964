//! How long admission took, plugin by plugin and step by step, under upstream's names.

use super::text::Text;
use crate::admission::Operation;
use crate::admission::plugin::Plugin;
use coracle_api::exposition::histogram::Durations;
use std::sync::OnceLock;
use std::time::Duration;

/// Upstream's buckets.
const SECONDS: &[f64] = &[0.005, 0.025, 0.1, 0.5, 1.0, 2.5];

/// What a plugin, or all of them together, may do with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Admit,
    Validate,
}

impl Step {
    const ALL: [Self; 2] = [Self::Admit, Self::Validate];

    fn as_str(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Validate => "validate",
        }
    }
}

/// What is counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Series {
    /// None for a step as a whole.
    plugin: Option<Plugin>,
    step: Step,
    operation: Operation,
    is_rejected: bool,
}

/// A place for each series there can be, filled by the first that is counted: every write counts
/// dozens, and none of them waits or searches.
#[derive(Debug)]
pub struct Times(Box<[OnceLock<Box<Durations>>]>);

impl Default for Times {
    fn default() -> Self {
        Self(Series::all().map(|_| OnceLock::new()).collect())
    }
}

impl Times {
    /// Counts what one plugin took; with none, what all did.
    pub fn add(
        &self,
        plugin: Option<Plugin>,
        step: Step,
        operation: Operation,
        is_rejected: bool,
        elapsed: Duration,
    ) {
        let series = Series {
            plugin,
            step,
            operation,
            is_rejected,
        };
        let durations = self.0[series.place()].get_or_init(|| Box::new(Durations::new(SECONDS)));
        durations.add(elapsed);
    }

    pub fn text(&self, text: &mut Text) {
        let controller = "apiserver_admission_controller_admission_duration_seconds";
        let help = "Admission controller latency histogram in seconds, identified by name and \
                    broken out for each operation and type (validate or admit).";
        text.family(controller, "histogram", help);
        for (series, durations) in self.counted() {
            if let Some(plugin) = series.plugin {
                let mut labels = vec![("name", plugin.name())];
                labels.extend(series.labels());
                durations.text(text, controller, &labels);
            }
        }
        let step = "apiserver_admission_step_admission_duration_seconds";
        let help = "Admission sub-step latency histogram in seconds, broken out for each \
                    operation and step type (validate or admit).";
        text.family(step, "histogram", help);
        for (series, durations) in self.counted() {
            if series.plugin.is_none() {
                durations.text(text, step, &series.labels());
            }
        }
    }

    fn counted(&self) -> impl Iterator<Item = (Series, &Durations)> {
        let places = Series::all().zip(&*self.0);
        places.filter_map(|(series, place)| Some((series, &**place.get()?)))
    }
}

impl Series {
    /// In the order of their places.
    fn all() -> impl Iterator<Item = Self> {
        let plugins = std::iter::once(None).chain(Plugin::ALL.iter().copied().map(Some));
        plugins.flat_map(|plugin| {
            Step::ALL.into_iter().flat_map(move |step| {
                Operation::ALL.into_iter().flat_map(move |operation| {
                    [false, true].map(|is_rejected| Self {
                        plugin,
                        step,
                        operation,
                        is_rejected,
                    })
                })
            })
        })
    }

    fn place(self) -> usize {
        let plugin = self.plugin.map_or(0, |plugin| 1 + plugin as usize);
        let step = plugin * Step::ALL.len() + self.step as usize;
        let operation = step * Operation::ALL.len() + self.operation as usize;
        operation * 2 + usize::from(self.is_rejected)
    }

    fn labels(&self) -> [(&'static str, &'static str); 3] {
        let rejected = if self.is_rejected { "true" } else { "false" };
        [
            ("operation", self.operation.as_str()),
            ("rejected", rejected),
            ("type", self.step.as_str()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_series_has_its_place() {
        for (place, series) in Series::all().enumerate() {
            assert_eq!(series.place(), place, "{series:?}");
        }
    }
}
