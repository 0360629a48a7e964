//! What is counted of autoscalers, under upstream's names.
//!
//! Of the whole process, as the counters of loops are: they go on when the loop begins again.
//! Labels are from fixed lists, but for the gauge of each autoscaler that there is.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use coracle_api::exposition::Text;
use coracle_client::ObjectKey;
use parking_lot::Mutex;

use super::ReconcileError;

/// Upstream's buckets, in milliseconds: each twice the one before.
const FIRST_BUCKET_MS: u32 = 1;
const BUCKETS: usize = 15;

/// Upstream's prefix of all names.
macro_rules! name {
    ($name:literal) => {
        concat!("horizontal_pod_autoscaler_controller_", $name)
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Action {
    ScaleUp,
    ScaleDown,
    None,
}

impl Action {
    /// From some replicas to others.
    pub(super) fn of(from: i32, to: i32) -> Self {
        match to.cmp(&from) {
            std::cmp::Ordering::Greater => Self::ScaleUp,
            std::cmp::Ordering::Less => Self::ScaleDown,
            std::cmp::Ordering::Equal => Self::None,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::ScaleUp => "scale_up",
            Self::ScaleDown => "scale_down",
            Self::None => "none",
        }
    }
}

/// Whose fault it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    Spec,
    Internal,
    None,
}

impl Fault {
    fn label(self) -> &'static str {
        match self {
            Self::Spec => "spec",
            Self::Internal => "internal",
            Self::None => "none",
        }
    }

    pub(super) fn of(result: &Result<(), ReconcileError>) -> Self {
        match result {
            Ok(()) => Self::None,
            Err(ReconcileError::Version(_)) => Self::Spec,
            Err(_) => Self::Internal,
        }
    }
}

/// How often, and how long each time.
#[derive(Clone, Debug, Default)]
struct Times {
    /// What took longer than all buckets is in none.
    buckets: [u64; BUCKETS],
    count: u64,
    sum: Duration,
}

impl Times {
    fn add(&mut self, took: Duration) {
        let bucket = (0..BUCKETS).find(|place| took <= bound(*place));
        if let Some(place) = bucket {
            self.buckets[place] += 1;
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(took);
    }
}

fn bound(place: usize) -> Duration {
    Duration::from_millis(u64::from(FIRST_BUCKET_MS) << place)
}

#[derive(Debug, Default)]
struct Kept {
    passes: BTreeMap<(Action, Fault), Times>,
    metrics: BTreeMap<(Action, Fault, &'static str), Times>,
    /// The autoscalers there are, and what each wants, once it was looked at.
    autoscalers: BTreeMap<ObjectKey, Option<i32>>,
}

#[derive(Debug, Default)]
pub(super) struct Counts(Mutex<Kept>);

pub(super) static COUNTS: LazyLock<Counts> = LazyLock::new(Counts::default);

/// All of it, as metrics.
pub fn text(text: &mut Text) {
    COUNTS.text(text);
}

impl Counts {
    pub(super) fn pass(&self, action: Action, fault: Fault, took: Duration) {
        let mut kept = self.0.lock();
        kept.passes.entry((action, fault)).or_default().add(took);
    }

    pub(super) fn metric(&self, action: Action, fault: Fault, kind: &str, took: Duration) {
        let mut kept = self.0.lock();
        let of = (action, fault, known(kind));
        kept.metrics.entry(of).or_default().add(took);
    }

    pub(super) fn is_there(&self, key: &ObjectKey) {
        self.0.lock().autoscalers.entry(key.clone()).or_default();
    }

    /// One that is gone meanwhile does not come back by this.
    pub(super) fn wants(&self, key: &ObjectKey, replicas: i32) {
        if let Some(wanted) = self.0.lock().autoscalers.get_mut(key) {
            *wanted = Some(replicas);
        }
    }

    pub(super) fn forget(&self, key: &ObjectKey) {
        self.0.lock().autoscalers.remove(key);
    }

    fn text(&self, text: &mut Text) {
        let kept = self.0.lock();
        let passes = kept.passes.iter();
        let passes = passes.map(|((action, fault), times)| (labels(*action, *fault), times));
        let (total, seconds) = (
            name!("reconciliations_total"),
            name!("reconciliation_duration_seconds"),
        );
        write(text, total, seconds, REACTIONS, &passes.collect::<Vec<_>>());
        let metrics = kept.metrics.iter().map(|((action, fault, kind), times)| {
            let mut labels = labels(*action, *fault);
            labels.push(("metric_type", kind));
            (labels, times)
        });
        let (total, seconds) = (
            name!("metric_computation_total"),
            name!("metric_computation_duration_seconds"),
        );
        let metrics: Vec<_> = metrics.collect();
        write(text, total, seconds, COMPUTATIONS, &metrics);
        let there = name!("num_horizontal_pod_autoscalers");
        text.family(there, "gauge", "Autoscalers there are.");
        text.sample(there, &[], kept.autoscalers.len());
        let desired = name!("desired_replicas");
        text.family(desired, "gauge", "Replicas that an autoscaler wants now.");
        for (key, wanted) in &kept.autoscalers {
            if let Some(wanted) = wanted {
                let labels = [("namespace", &*key.namespace), ("hpa_name", &*key.name)];
                text.sample(desired, &labels, wanted);
            }
        }
    }
}

type Labels = Vec<(&'static str, &'static str)>;
type Help = [&'static str; 2];

const REACTIONS: Help = [
    "Looks at an autoscaler, by what was done and whose fault a failure was.",
    "How long a look at an autoscaler took.",
];
const COMPUTATIONS: Help = [
    "Metrics worked out, by what each asked for and whose fault a failure was.",
    "How long it took to work out a metric.",
];

fn labels(action: Action, fault: Fault) -> Labels {
    vec![("action", action.label()), ("error", fault.label())]
}

fn write(text: &mut Text, total: &str, seconds: &str, help: Help, all: &[(Labels, &Times)]) {
    text.family(total, "counter", help[0]);
    for (labels, times) in all {
        text.sample(total, labels, times.count);
    }
    text.family(seconds, "histogram", help[1]);
    for (labels, times) in all {
        let bounds = (0..BUCKETS).map(|place| bound(place).as_secs_f64());
        let buckets = bounds.zip(times.buckets);
        text.histogram(
            seconds,
            labels,
            buckets,
            times.sum.as_secs_f64(),
            times.count,
        );
    }
}

/// A kind of metrics, in upstream's spelling; validation lets no other in.
fn known(kind: &str) -> &'static str {
    let all = [
        "Resource",
        "ContainerResource",
        "Pods",
        "Object",
        "External",
    ];
    all.into_iter().find(|one| *one == kind).unwrap_or("")
}

#[cfg(test)]
mod tests;
