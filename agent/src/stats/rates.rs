//! Processors in use: what was counted since the request before. Pure.

use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// What was counted longer ago says nothing of now.
const APART_MAX: Duration = Duration::from_secs(60);
/// Counts that are nearer to each other than this are mostly noise.
const APART_MIN: Duration = Duration::from_millis(50);

/// By what is counted: a container, a sandbox, the node. Holds what was seen last, and no more.
#[derive(Debug, Default)]
pub struct Rates {
    at: Option<Instant>,
    counted: HashMap<String, Counted>,
}

#[derive(Clone, Copy, Debug)]
struct Counted {
    at: Instant,
    cpu_ns: u64,
    nano_cores: Option<u64>,
}

impl Rates {
    /// Whether the next counts will give rates.
    pub fn is_fresh(&self, now: Instant) -> bool {
        self.at
            .is_some_and(|at| now.saturating_duration_since(at) < APART_MAX)
    }

    /// Takes the counts of now; what is not among them is forgotten.
    pub fn count(&mut self, counts: impl IntoIterator<Item = (String, u64)>, now: Instant) {
        let before = std::mem::take(&mut self.counted);
        self.at = Some(now);
        let next = |key: String, cpu_ns: u64| {
            let known = before.get(&key);
            let apart = known.map(|known| now.saturating_duration_since(known.at));
            let counted = match (known, apart) {
                (Some(known), Some(apart)) if apart < APART_MIN => *known,
                (Some(known), Some(apart)) if apart < APART_MAX => Counted {
                    at: now,
                    cpu_ns,
                    nano_cores: rate(cpu_ns.checked_sub(known.cpu_ns), apart),
                },
                _ => Counted {
                    at: now,
                    cpu_ns,
                    nano_cores: None,
                },
            };
            (key, counted)
        };
        self.counted = counts
            .into_iter()
            .map(|(key, cpu_ns)| next(key, cpu_ns))
            .collect();
    }

    pub fn nano_cores(&self, key: &str) -> Option<u64> {
        self.counted.get(key)?.nano_cores
    }
}

/// None for a count that began anew.
fn rate(used_ns: Option<u64>, apart: Duration) -> Option<u64> {
    let used = u128::from(used_ns?);
    u64::try_from(used * 1_000_000_000 / apart.as_nanos().max(1)).ok()
}

#[cfg(test)]
mod tests;
