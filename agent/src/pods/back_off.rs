//! How long to wait before the next try: 10 s after the first failure, doubled up to 5 min, and
//! forgotten after 10 min of peace. Pure; the rules and the words are upstream's.

use jiff::Timestamp;

const INITIAL_SECONDS: i64 = 10;
const MAX_SECONDS: i64 = 300;
/// A container that ran this long after the last failure starts from the beginning.
const FORGET_SECONDS: i64 = 2 * MAX_SECONDS;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BackOff {
    pub seconds: i64,
    updated: Timestamp,
}

impl BackOff {
    /// After a failure at `failed`, noted `now`.
    pub fn after(last: Option<&Self>, failed: Timestamp, now: Timestamp) -> Self {
        let seconds = match last {
            Some(last) if !last.is_forgotten(failed) => (last.seconds * 2).min(MAX_SECONDS),
            _ => INITIAL_SECONDS,
        };
        Self {
            seconds,
            updated: now,
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

    fn is_forgotten(&self, failed: Timestamp) -> bool {
        failed.as_second() - self.updated.as_second() > FORGET_SECONDS
    }
}

/// Whole seconds as Go prints a duration: `10s`, `1m20s`, `5m0s`.
pub fn go_seconds(seconds: i64) -> String {
    if seconds < 60 {
        format!("{seconds}s")
    } else {
        format!("{}m{}s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests;
