//! Processors in use, of two counts each. Pure.
//!
//! As metrics-server: a container that began between two counts has used nothing when it began, a
//! pod of which one container is not known is not known, and a count that is no newer than the one
//! before changes nothing.

use coracle_api::kinds::metrics::Used;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// What began nearer to its first count than this says little.
const BEGUN_MS_MIN: i64 = 10_000;
const NANO_A_MILLI: u64 = 1_000_000;

/// One count. Times are by the clock of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub at_ms: i64,
    pub started_ms: Option<i64>,
    pub cpu_ns: u64,
    pub memory_bytes: u64,
}

/// All that a node told at one time.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Batch {
    pub node: Option<Point>,
    /// By namespace and name; of each container, `None` where not all of it was told.
    pub pods: BTreeMap<(String, String), BTreeMap<String, Option<Point>>>,
}

/// The newest count, and where its interval began: time and count.
#[derive(Clone, Copy, Debug)]
struct Series {
    last: Point,
    since: Option<(i64, u64)>,
}

/// What is known of one node.
#[derive(Debug, Default)]
pub struct Samples {
    taken: Option<Instant>,
    node: Option<Series>,
    pods: BTreeMap<(String, String), BTreeMap<String, Option<Series>>>,
}

impl Samples {
    /// Takes what was told; what is not in it is forgotten. Says whether there was anything to
    /// compare it with: what is older than `apart_max` is not.
    pub fn add(&mut self, batch: Batch, now: Instant, apart_max: Duration) -> bool {
        let is_near = self.is_near(now, apart_max);
        let before = std::mem::take(self);
        let before = if is_near { before } else { Self::default() };
        let began_ms_max = i64::try_from(apart_max.as_millis()).unwrap_or(i64::MAX);
        let next = |point: Option<Point>, before: Option<Series>| {
            point.map(|point| next(point, before, began_ms_max))
        };
        self.taken = Some(now);
        self.node = next(batch.node, before.node);
        let with_rates = |(pod, points): (_, BTreeMap<String, Option<Point>>)| {
            let known = before.pods.get(&pod);
            let of = |name: &str| *known?.get(name)?;
            let each = points.into_iter().map(|(name, point)| {
                let series = next(point, of(&name));
                (name, series)
            });
            let each: BTreeMap<_, _> = each.collect();
            (pod, each)
        };
        self.pods = batch.pods.into_iter().map(with_rates).collect();
        is_near
    }

    /// Whether the newest count was taken no longer ago.
    pub fn is_near(&self, now: Instant, apart_max: Duration) -> bool {
        let apart = |taken: Instant| now.saturating_duration_since(taken);
        self.taken.is_some_and(|taken| apart(taken) <= apart_max)
    }

    pub fn node(&self) -> Option<Used> {
        self.node?.used()
    }

    /// `None` where one of its containers is not known.
    pub fn pod(&self, namespace: &str, name: &str) -> Option<Vec<(String, Used)>> {
        let containers = self.pods.get(&(namespace.to_owned(), name.to_owned()))?;
        let each = containers
            .iter()
            .map(|(name, series)| Some((name.clone(), series.as_ref()?.used()?)));
        each.collect()
    }
}

fn next(point: Point, before: Option<Series>, began_ms_max: i64) -> Series {
    let is_same = |before: &Series| {
        let is_older = point.started_ms.is_none_or(|at| at < before.last.at_ms);
        is_older && point.cpu_ns >= before.last.cpu_ns
    };
    if let Some(before) = before.filter(is_same) {
        if point.at_ms <= before.last.at_ms {
            return before;
        }
        let since = Some((before.last.at_ms, before.last.cpu_ns));
        return Series { last: point, since };
    }
    let began = point.started_ms.filter(|began| {
        let ms = point.at_ms.saturating_sub(*began);
        (BEGUN_MS_MIN..began_ms_max).contains(&ms)
    });
    let since = began.map(|began| (began, 0));
    Series { last: point, since }
}

impl Series {
    fn used(&self) -> Option<Used> {
        let (since_ms, since_ns) = self.since?;
        let window_ms = u64::try_from(self.last.at_ms.checked_sub(since_ms)?).ok()?;
        let used_ns = u128::from(self.last.cpu_ns.checked_sub(since_ns)?);
        let cpu = (used_ns * 1_000).checked_div(window_ms.into())?;
        Some(Used {
            at: Timestamp::from_millisecond(self.last.at_ms).ok()?,
            window_ns: window_ms.checked_mul(NANO_A_MILLI)?,
            cpu_nano_cores: cpu.try_into().ok()?,
            memory_bytes: self.last.memory_bytes,
        })
    }
}

#[cfg(test)]
mod tests;
