//! Text for people: ages as upstream's `HumanDuration` has them.
//!
//! Shared by the printed columns of the kinds; never reads a clock.

use crate::object::Object;
use jiff::Timestamp;
use serde_json::Value;

const UNKNOWN: &str = "<unknown>";

/// Seconds since the epoch of an RFC 3339 time, `None` for an empty or bad one.
pub fn epoch_seconds(time: &str) -> Option<i64> {
    time.parse::<Timestamp>().ok().map(Timestamp::as_second)
}

/// The age, at `now` (seconds since the epoch), of an RFC 3339 time: `5m`, `3h20m`, `<unknown>`.
pub fn age(time: &str, now: i64) -> String {
    match epoch_seconds(time) {
        Some(then) => human_duration(now - then),
        None => UNKNOWN.to_owned(),
    }
}

/// The age of an object, as a cell.
pub fn age_of(object: &Object, now: i64) -> Value {
    age(object.str(&["metadata", "creationTimestamp"]), now).into()
}

/// Two units at most, fewer the longer it is: `90s`, `5m30s`, `3h20m`, `2d5h`, `40d`, `3y20d`.
pub fn human_duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    // A clock that is a little behind is no fault; one that is far behind shows.
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let two = |big: i64, big_unit: &str, small: i64, small_unit: &str| {
        if small == 0 {
            format!("{big}{big_unit}")
        } else {
            format!("{big}{big_unit}{small}{small_unit}")
        }
    };
    if seconds < 2 * MINUTE {
        format!("{seconds}s")
    } else if seconds < 10 * MINUTE {
        two(seconds / MINUTE, "m", seconds % MINUTE, "s")
    } else if seconds < 3 * HOUR {
        format!("{}m", seconds / MINUTE)
    } else if seconds < 8 * HOUR {
        two(seconds / HOUR, "h", seconds / MINUTE % 60, "m")
    } else if seconds < 2 * DAY {
        format!("{}h", seconds / HOUR)
    } else if seconds < 8 * DAY {
        two(seconds / DAY, "d", seconds / HOUR % 24, "h")
    } else if seconds < 2 * YEAR {
        format!("{}d", seconds / DAY)
    } else if seconds < 8 * YEAR {
        two(seconds / YEAR, "y", seconds / DAY % 365, "d")
    } else {
        format!("{}y", seconds / YEAR)
    }
}

#[cfg(test)]
mod tests;
