//! Dates, times of day and durations.

use super::Pattern;
use crate::go_duration;
use jiff::civil::Date;

/// `2006-01-02`.
pub fn is_date(text: &str) -> bool {
    let form = text.bytes().enumerate().all(|(index, byte)| match index {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    form && text.len() == 10 && text.parse::<Date>().is_ok()
}

/// `2006-01-02T15:04:05.000Z`, in small letters or capitals. Whatever stands before the digits of a
/// fraction, and behind a second `t`, is not looked at.
pub fn is_date_time(text: &str) -> bool {
    static PATTERN: Pattern =
        Pattern::new("^([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})$");
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    let Some(found) = PATTERN.regex().captures(time) else {
        return false;
    };
    is_date(date) && found[1] <= *"23" && found[2] <= *"59" && found[3] <= *"59"
}

/// Go's durations, `1h30m`, and whatever has whole numbers with the name of a unit: `3 days`.
pub fn is_duration(text: &str) -> bool {
    static PATTERN: Pattern = Pattern::new(r"(\d+)\s*([A-Za-z\x{b5}]+)");
    if go_duration::parse(text).is_ok() {
        return true;
    }
    let mut has_unit = false;
    for found in PATTERN.regex().captures_iter(text) {
        if found[1].parse::<i64>().is_err() {
            return false;
        }
        has_unit = has_unit || is_unit(&found[2].to_lowercase());
    }
    has_unit
}

/// Names in full, or beginnings of names.
fn is_unit(name: &str) -> bool {
    const NAMES: [&str; 11] = [
        "ns", "us", "\u{b5}s", "ms", "s", "m", "h", "hr", "d", "w", "wk",
    ];
    const BEGINNINGS: [&str; 8] = [
        "nano", "micro", "milli", "sec", "min", "hour", "day", "week",
    ];
    NAMES.contains(&name) || BEGINNINGS.iter().any(|start| name.starts_with(start))
}
