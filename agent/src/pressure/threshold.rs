//! When a signal is too low: the flags of eviction, and what they come to. Pure.

use super::signal::Signal;
use coracle_api::quantity::{Format, Quantity};
use std::collections::BTreeMap;
use std::time::Duration;

/// Signals of a disk for writable layers alone. It is one of the two others here, and what is
/// said of it is passed over, as upstream does.
const PASSED_OVER: [&str; 2] = ["containerfs.available", "containerfs.inodesFree"];

/// The hard thresholds when nothing is said. Half of upstream's for the disks, as other
/// distributions for the edge have it: a tenth of a disk that holds other things too is not yet
/// distress. Upstream has none for process ids; a container that forks without end is ended here.
pub const HARD_DEFAULT: [(&str, &str); 6] = [
    ("memory.available", "100Mi"),
    ("nodefs.available", "5%"),
    ("nodefs.inodesFree", "5%"),
    ("imagefs.available", "5%"),
    ("imagefs.inodesFree", "5%"),
    ("pid.available", "5%"),
];

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Quantity(Quantity),
    /// Of the capacity, 1 for all of it. Single precision, as upstream computes.
    Share(f32),
}

impl Value {
    pub fn of(self, capacity: Quantity) -> Quantity {
        match self {
            Self::Quantity(quantity) => quantity,
            #[allow(clippy::cast_possible_truncation)] // Less than the capacity.
            Self::Share(share) => {
                let units = capacity.value() as f64 * f64::from(share);
                Quantity::from_units(units as i64, Format::BinarySi)
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    pub signal: Signal,
    pub value: Value,
    /// Zero for a hard one.
    pub grace: Duration,
    pub min_reclaim: Option<Value>,
}

impl Threshold {
    pub fn is_hard(&self) -> bool {
        self.grace.is_zero()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub thresholds: Vec<Threshold>,
    /// Longest grace of a pod that is evicted for a soft threshold.
    pub max_pod_grace_seconds: i64,
    /// How long a condition stays after the last time it was seen.
    pub transition: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        let words = Words {
            hard: pairs(&HARD_DEFAULT),
            ..Words::default()
        };
        Self {
            thresholds: thresholds(&words).expect("the defaults are well formed"),
            max_pod_grace_seconds: 0,
            transition: Duration::from_secs(5 * 60),
        }
    }
}

/// The four flags as they were given, each a value by signal.
#[derive(Clone, Debug, Default)]
pub struct Words {
    pub hard: BTreeMap<String, String>,
    pub soft: BTreeMap<String, String>,
    pub soft_grace: BTreeMap<String, String>,
    pub minimum_reclaim: BTreeMap<String, String>,
}

pub fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(own).collect()
}

/// Which flag is wrong, which part of it, and what is right.
#[derive(Debug, Eq, PartialEq)]
pub struct BadThreshold {
    pub flag: &'static str,
    pub value: String,
    pub expected: String,
}

pub fn thresholds(words: &Words) -> Result<Vec<Threshold>, BadThreshold> {
    let mut found = statements("eviction-hard", '<', &words.hard)?;
    let graces = graces(&words.soft_grace)?;
    for mut soft in statements("eviction-soft", '<', &words.soft)? {
        let name = soft.signal.name();
        let grace = graces.get(name).ok_or_else(|| BadThreshold {
            flag: "eviction-soft-grace-period",
            value: String::new(),
            expected: format!("must have a period for {name}, which is in --eviction-soft"),
        })?;
        soft.grace = *grace;
        found.push(soft);
    }
    let reclaims = reclaims(&words.minimum_reclaim)?;
    for threshold in &mut found {
        threshold.min_reclaim = reclaims.get(threshold.signal.name()).copied();
    }
    // The pods' own bound is watched like the machine's memory.
    let of_memory = found
        .iter()
        .find(|found| found.signal == Signal::MemoryAvailable && found.is_hard());
    if let Some(memory) = of_memory.copied() {
        found.push(Threshold {
            signal: Signal::AllocatableMemoryAvailable,
            ..memory
        });
    }
    found.sort_by_key(|threshold| threshold.signal);
    Ok(found)
}

fn bad(flag: &'static str, sign: char, name: &str, value: &str, expected: &str) -> BadThreshold {
    BadThreshold {
        flag,
        value: format!("{name}{sign}{value}"),
        expected: expected.to_owned(),
    }
}

fn signal(
    flag: &'static str,
    sign: char,
    name: &str,
    value: &str,
) -> Result<Option<Signal>, BadThreshold> {
    if PASSED_OVER.contains(&name) {
        return Ok(None);
    }
    if let Some(signal) = Signal::named(name) {
        return Ok(Some(signal));
    }
    let names: Vec<_> = Signal::ALL.iter().map(|signal| signal.name()).collect();
    let expected = format!("the signal must be one of {}", names.join(", "));
    Err(bad(flag, sign, name, value, &expected))
}

fn statements(
    flag: &'static str,
    sign: char,
    given: &BTreeMap<String, String>,
) -> Result<Vec<Threshold>, BadThreshold> {
    let mut found = Vec::new();
    for (name, text) in given {
        let Some(signal) = signal(flag, sign, name, text)? else {
            continue;
        };
        // Upstream's way to switch one off.
        if text == "0%" || text == "100%" {
            continue;
        }
        let value = value(text).filter(|value| match value {
            Value::Quantity(quantity) => !quantity.is_negative() && !quantity.is_zero(),
            Value::Share(share) => (0.0..=1.0).contains(share),
        });
        let expected = "the threshold must be a quantity above 0, such as 500Mi, or 0% to 100%";
        found.push(Threshold {
            signal,
            value: value.ok_or_else(|| bad(flag, sign, name, text, expected))?,
            grace: Duration::ZERO,
            min_reclaim: None,
        });
    }
    Ok(found)
}

fn value(text: &str) -> Option<Value> {
    if let Some(percent) = text.strip_suffix('%') {
        let percent: f32 = percent.parse().ok()?;
        return percent.is_finite().then_some(Value::Share(percent / 100.0));
    }
    Quantity::parse(text).ok().map(Value::Quantity)
}

fn graces(given: &BTreeMap<String, String>) -> Result<BTreeMap<&str, Duration>, BadThreshold> {
    let flag = "eviction-soft-grace-period";
    let mut found = BTreeMap::new();
    for (name, text) in given {
        signal(flag, '=', name, text)?;
        let nanoseconds = coracle_api::go_duration::parse(text).ok();
        let grace = nanoseconds.and_then(|nanoseconds| u64::try_from(nanoseconds).ok());
        let expected = "the period must be a duration, such as 1m30s";
        let grace = grace.ok_or_else(|| bad(flag, '=', name, text, expected))?;
        found.insert(name.as_str(), Duration::from_nanos(grace));
    }
    Ok(found)
}

fn reclaims(given: &BTreeMap<String, String>) -> Result<BTreeMap<&str, Value>, BadThreshold> {
    let flag = "eviction-minimum-reclaim";
    let mut found = BTreeMap::new();
    for (name, text) in given {
        signal(flag, '=', name, text)?;
        let value = value(text).filter(|value| match value {
            Value::Quantity(quantity) => !quantity.is_negative(),
            Value::Share(share) => *share > 0.0,
        });
        let expected = "the amount must be a quantity, such as 500Mi, or a percentage above 0%";
        found.insert(
            name.as_str(),
            value.ok_or_else(|| bad(flag, '=', name, text, expected))?,
        );
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
