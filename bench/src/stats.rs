//! What is said about a run: how many, how fast, and how the latencies are spread. Pure.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The figures of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub work: String,
    pub count: usize,
    pub failed: usize,
    pub elapsed: Duration,
    pub p50: Duration,
    pub p90: Duration,
    pub p99: Duration,
    pub max: Duration,
    /// What else was counted.
    pub notes: Vec<(String, u64)>,
}

impl Report {
    /// `latencies` are those of what succeeded, in any order.
    pub fn new(
        work: impl Into<String>,
        mut latencies: Vec<Duration>,
        failed: usize,
        elapsed: Duration,
    ) -> Self {
        latencies.sort_unstable();
        Self {
            work: work.into(),
            count: latencies.len(),
            failed,
            elapsed,
            p50: percentile(&latencies, 50),
            p90: percentile(&latencies, 90),
            p99: percentile(&latencies, 99),
            max: latencies.last().copied().unwrap_or_default(),
            notes: Vec::new(),
        }
    }

    pub fn with_notes(mut self, notes: Vec<(String, u64)>) -> Self {
        self.notes = notes;
        self
    }

    /// Successes a second.
    pub fn rate(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds == 0.0 {
            return 0.0;
        }
        self.count as f64 / seconds
    }

    pub fn table(&self) -> String {
        let mut table = self.line();
        for (what, count) in &self.notes {
            table.push_str(&format!("\n{count:>18} {what}"));
        }
        table
    }

    fn line(&self) -> String {
        let width = self.work.len().max("schedule".len()) + 2;
        format!(
            "{:<width$}{:>8}{:>8}{:>10}{:>10}{:>10}{:>10}{:>10}\n\
             {:<width$}{:>8}{:>8}{:>10.1}{:>10.2}{:>10.2}{:>10.2}{:>10.2}",
            "work",
            "count",
            "failed",
            "rate/s",
            "p50 ms",
            "p90 ms",
            "p99 ms",
            "max ms",
            self.work,
            self.count,
            self.failed,
            self.rate(),
            ms(self.p50),
            ms(self.p90),
            ms(self.p99),
            ms(self.max)
        )
    }

    pub fn json(&self) -> Value {
        json!({
            "work": self.work,
            "count": self.count,
            "failed": self.failed,
            "seconds": self.elapsed.as_secs_f64(),
            "rate": self.rate(),
            "p50Ms": ms(self.p50),
            "p90Ms": ms(self.p90),
            "p99Ms": ms(self.p99),
            "maxMs": ms(self.max),
            "counted": self.notes.iter().cloned().collect::<BTreeMap<_, _>>(),
        })
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The smallest value that at least `percent` of the values do not exceed (nearest rank).
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
