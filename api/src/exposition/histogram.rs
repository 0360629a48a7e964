//! Histograms that many threads add to without a lock.

use super::Text;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often each bucket was hit, and the sum in whole units.
#[derive(Debug)]
struct Buckets {
    bounds: &'static [f64],
    /// One more than there are bounds: the last is for what is over all of them.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Buckets {
    fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
        }
    }

    fn add(&self, value: f64, units: u64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        self.counts[place].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(units, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        let counts = self.counts.iter();
        counts.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    fn text(&self, text: &mut Text, name: &str, labels: &[(&str, &str)], unit: f64) {
        let counts: Vec<u64> = self
            .counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .collect();
        let total = counts.iter().sum();
        let sum = self.sum.load(Ordering::Relaxed) as f64 * unit;
        let buckets = self.bounds.iter().copied().zip(counts);
        text.histogram(name, labels, buckets, sum, total);
    }
}

/// A histogram of durations, in seconds.
#[derive(Debug)]
pub struct Durations(Buckets);

impl Durations {
    pub fn new(bounds: &'static [f64]) -> Self {
        Self(Buckets::new(bounds))
    }

    pub fn add(&self, elapsed: Duration) {
        let nanoseconds = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        self.0.add(elapsed.as_secs_f64(), nanoseconds);
    }

    pub fn count(&self) -> u64 {
        self.0.count()
    }

    pub fn text(&self, text: &mut Text, name: &str, labels: &[(&str, &str)]) {
        self.0.text(text, name, labels, 1e-9);
    }
}

/// A histogram of whole numbers, such as bytes.
#[derive(Debug)]
pub struct Sizes(Buckets);

impl Sizes {
    pub fn new(bounds: &'static [f64]) -> Self {
        Self(Buckets::new(bounds))
    }

    pub fn add(&self, size: u64) {
        self.0.add(size as f64, size);
    }

    pub fn count(&self) -> u64 {
        self.0.count()
    }

    pub fn text(&self, text: &mut Text, name: &str, labels: &[(&str, &str)]) {
        self.0.text(text, name, labels, 1.0);
    }
}
