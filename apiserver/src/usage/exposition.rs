//! Reads what a node answers at `/metrics/resource`: the families that usage is made of, the rest
//! is passed over. What cannot be read is left out: a node tells of itself alone.

use super::samples::{Batch, Point};
use std::collections::BTreeMap;

const NODE_CPU: &str = "node_cpu_usage_seconds_total";
const NODE_MEMORY: &str = "node_memory_working_set_bytes";
const CONTAINER_CPU: &str = "container_cpu_usage_seconds_total";
const CONTAINER_MEMORY: &str = "container_memory_working_set_bytes";
const CONTAINER_STARTED: &str = "container_start_time_seconds";

const NANO: f64 = 1e9;
const MILLI: f64 = 1e3;
/// No more labels are looked at; those of containers are three.
const LABELS_MAX: usize = 8;

/// One line: a sample of a family.
#[derive(Debug, PartialEq)]
struct Sample<'a> {
    name: &'a str,
    labels: BTreeMap<&'a str, String>,
    value: f64,
    at_ms: Option<i64>,
}

/// What was told of one container or of the node, so far.
#[derive(Debug, Default)]
struct Partly {
    cpu_ns: Option<(u64, i64)>,
    memory_bytes: Option<u64>,
    started_ms: Option<i64>,
}

impl Partly {
    /// Both must be there, and the time of the count.
    fn whole(self) -> Option<Point> {
        let (cpu_ns, at_ms) = self.cpu_ns?;
        Some(Point {
            at_ms,
            started_ms: self.started_ms,
            cpu_ns,
            memory_bytes: self.memory_bytes?,
        })
    }
}

pub fn read(text: &str) -> Batch {
    let mut node = Partly::default();
    let mut containers: BTreeMap<[String; 3], Partly> = BTreeMap::new();
    for sample in text.lines().filter_map(sample) {
        let value = sample.value;
        let counted = || Some((whole(value * NANO)?, sample.at_ms?));
        match sample.name {
            NODE_CPU => node.cpu_ns = counted(),
            NODE_MEMORY => node.memory_bytes = whole(value),
            CONTAINER_CPU | CONTAINER_MEMORY | CONTAINER_STARTED => {
                let label = |name| sample.labels.get(name).cloned().unwrap_or_default();
                let of = ["namespace", "pod", "container"].map(label);
                let partly = containers.entry(of).or_default();
                match sample.name {
                    CONTAINER_CPU => partly.cpu_ns = counted(),
                    CONTAINER_MEMORY => partly.memory_bytes = whole(value),
                    _ => partly.started_ms = whole(value * MILLI).and_then(|ms| ms.try_into().ok()),
                }
            }
            _ => {}
        }
    }
    let mut batch = Batch {
        node: node.whole(),
        pods: BTreeMap::new(),
    };
    for ([namespace, pod, container], partly) in containers {
        let pod = batch.pods.entry((namespace, pod)).or_default();
        pod.insert(container, partly.whole());
    }
    batch
}

/// `None` for what is no number of anything.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is looked at"
)]
fn whole(value: f64) -> Option<u64> {
    (value >= 0.0 && value < u64::MAX as f64).then_some(value as u64)
}

/// `name{label="value",...} value time`, labels and time left out or not.
fn sample(line: &str) -> Option<Sample<'_>> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    if name.is_empty() || name.starts_with('#') {
        return None;
    }
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (BTreeMap::new(), rest),
    };
    let mut numbers = rest.split_ascii_whitespace();
    Some(Sample {
        name,
        labels,
        value: numbers.next()?.parse().ok()?,
        at_ms: numbers.next().and_then(|at| at.parse().ok()),
    })
}

/// Up to and with the brace that ends them, and what is behind it.
fn labels(mut rest: &str) -> Option<(BTreeMap<&str, String>, &str)> {
    let mut labels = BTreeMap::new();
    for _ in 0..=LABELS_MAX {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(behind) = rest.strip_prefix('}') {
            return Some((labels, behind));
        }
        let (name, behind) = rest.split_once("=\"")?;
        let (value, behind) = quoted(behind)?;
        labels.insert(name.trim(), value);
        rest = behind;
    }
    None
}

/// Up to the quote that ends it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((place, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[place + 1..])),
            '\\' => value.push(match letters.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests;
