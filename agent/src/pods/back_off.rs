//! How long to wait before the next try: doubled after each failure up to a maximum, and forgotten
//! after twice that of peace. Pure; the rules and the words are upstream's.

use jiff::Timestamp;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pace {
    initial_seconds: i64,
    max_seconds: i64,
}

impl Pace {
    /// Of containers that end, and of images that do not come.
    pub const CONTAINER: Self = Self {
        initial_seconds: 10,
        max_seconds: 300,
    };
    /// Of volumes and sandboxes: soon at first, since what they wait for often comes by itself.
    pub const SANDBOX: Self = Self {
        initial_seconds: 1,
        max_seconds: 122,
    };
    /// Of claims that somebody is about to bind.
    pub const AWAITED: Self = Self {
        initial_seconds: 1,
        max_seconds: 15,
    };
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BackOff {
    pub seconds: i64,
    updated: Timestamp,
    pace: Pace,
}

impl BackOff {
    /// After a failure at `failed`, noted `now`.
    pub fn after(pace: Pace, last: Option<&Self>, failed: Timestamp, now: Timestamp) -> Self {
        let seconds = match last {
            Some(last) if !last.is_forgotten(failed) => (last.seconds * 2).min(pace.max_seconds),
            _ => pace.initial_seconds,
        };
        Self {
            seconds,
            updated: now,
            pace,
        }
    }

    /// When the wait that began at `failed` ends; None when it has, or when there is none.
    pub fn until(&self, failed: Timestamp, now: Timestamp) -> Option<Timestamp> {
        if self.is_forgotten(failed) {
            return None;
        }
        let end = failed.as_second() + self.seconds;
        let end = Timestamp::from_second(end).unwrap_or(failed);
        (now < end).then_some(end)
    }

    /// What went well this long after the last failure starts from the beginning.
    fn is_forgotten(&self, failed: Timestamp) -> bool {
        failed.as_second() - self.updated.as_second() > 2 * self.pace.max_seconds
    }
}

/// Whole seconds as Go prints a duration: `10s`, `1m20s`, `5m0s`.
pub fn go_seconds(seconds: i64) -> String {
    let (minutes, rest) = (seconds / 60, seconds % 60);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{rest}s"),
        (0, minutes) => format!("{minutes}m{rest}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{rest}s"),
    }
}

/// The same of the whole seconds of a duration.
pub fn go_duration(duration: Duration) -> String {
    go_seconds(i64::try_from(duration.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
