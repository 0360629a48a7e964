//! Counters of all control loops of this process, under upstream's metric names.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::queue::{Counters, WorkQueue};

/// One loop's numbers at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopStats {
    pub name: &'static str,
    pub queue: Counters,
    pub runs: u64,
    pub errors: u64,
    pub panics: u64,
}

#[derive(Debug, Default)]
pub(super) struct Totals {
    runs: AtomicU64,
    errors: AtomicU64,
    panics: AtomicU64,
}

struct Registered {
    totals: Arc<Totals>,
    queue: Box<dyn Fn() -> Counters + Send + Sync>,
}

/// Bounded by the number of distinct loop names, which are static.
static LOOPS: Mutex<BTreeMap<&'static str, Registered>> = Mutex::new(BTreeMap::new());

impl Totals {
    pub(super) fn count_run(&self) {
        self.runs.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_error(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_panic(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }
}

/// A loop started again under the same name goes on counting with its new queue.
pub(super) fn register<T>(name: &'static str, queue: &WorkQueue<T>) -> Arc<Totals>
where
    T: Eq + Hash + Clone + Send + 'static,
{
    let mut loops = LOOPS.lock();
    let totals = loops
        .get(name)
        .map(|known| known.totals.clone())
        .unwrap_or_default();
    let queue = queue.clone();
    let queue = Box::new(move || queue.counters());
    loops.insert(
        name,
        Registered {
            totals: totals.clone(),
            queue,
        },
    );
    totals
}

/// The numbers of every loop that was started, by name.
pub fn stats() -> Vec<LoopStats> {
    let loops = LOOPS.lock();
    let all = loops.iter().map(|(name, known)| LoopStats {
        name,
        queue: (known.queue)(),
        runs: known.totals.runs.load(Ordering::Relaxed),
        errors: known.totals.errors.load(Ordering::Relaxed),
        panics: known.totals.panics.load(Ordering::Relaxed),
    });
    all.collect()
}

/// Numbers of one kind, each with the name of its loop.
#[derive(Clone, Debug)]
pub struct Family {
    pub name: &'static str,
    /// As Prometheus calls it: `gauge` or `counter`.
    pub kind: &'static str,
    pub help: &'static str,
    pub samples: Vec<(&'static str, u64)>,
}

/// The same as metrics, with upstream's names where it has them.
pub fn families() -> Vec<Family> {
    let stats = stats();
    let of = |name, kind, help, value: fn(&LoopStats) -> u64| Family {
        name,
        kind,
        help,
        samples: stats.iter().map(|one| (one.name, value(one))).collect(),
    };
    let depth = |one: &LoopStats| one.queue.depth as u64;
    let failing = |one: &LoopStats| one.queue.failing as u64;
    let help = "Keys that wait for a worker.";
    let retried = "Keys added again after a failure.";
    let panics = "Passes that panicked.";
    vec![
        of("workqueue_depth", "gauge", help, depth),
        of("workqueue_adds_total", "counter", "Keys added.", |one| {
            one.queue.adds
        }),
        of("workqueue_retries_total", "counter", retried, |one| {
            one.queue.retries
        }),
        of(
            "coracle_loop_failing",
            "gauge",
            "Keys whose last pass failed.",
            failing,
        ),
        of(
            "coracle_loop_runs_total",
            "counter",
            "Passes of a control loop.",
            |one| one.runs,
        ),
        of(
            "coracle_loop_errors_total",
            "counter",
            "Passes that failed.",
            |one| one.errors,
        ),
        of("coracle_loop_panics_total", "counter", panics, |one| {
            one.panics
        }),
    ]
}
