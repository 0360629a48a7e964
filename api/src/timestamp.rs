//! Kubernetes' two time formats: RFC 3339 to the second (`Time`) and to the microsecond
//! (`MicroTime`), always written in UTC; and days. Pure.

use jiff::Timestamp;
use jiff::civil::Date;

/// `2026-01-02T03:04:05Z`: metav1.Time. Fractions of a second are cut off.
pub fn format_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `2026-01-02T03:04:05.000006Z`: metav1.MicroTime.
pub fn format_micro_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// `2026-01-02`: a day in UTC, as labels have it.
pub fn format_day(at: Timestamp) -> String {
    at.strftime(DAY).to_string()
}

/// Exactly what `format_day` writes. Days sort as their texts do.
pub fn parse_day(text: &str) -> Option<Date> {
    let day = Date::strptime(DAY, text).ok()?;
    (day.strftime(DAY).to_string() == text).then_some(day)
}

const DAY: &str = "%Y-%m-%d";

/// The first second of the year 0: what lies before it has no four digits for its year in UTC.
const FIRST_SECOND: i64 = -62_167_219_200;

/// Any RFC 3339 instant, with or without fraction, in any offset.
pub fn parse(text: &str) -> Option<Timestamp> {
    let at: Option<Timestamp> = is_rfc3339(text).then(|| text.parse().ok()).flatten();
    at.filter(|at| at.as_second() >= FIRST_SECOND)
}

/// jiff is more lenient than RFC 3339 (a space for the `T`, a time without seconds): hold it to
/// `YYYY-MM-DDTHH:MM:SS` with an optional fraction and an offset.
fn is_rfc3339(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shape = b"0000-00-00T00:00:00";
    let (Some(head), Some(tail)) = (bytes.get(..shape.len()), bytes.get(shape.len()..)) else {
        return false;
    };
    let fits = head.iter().zip(shape).all(|(byte, want)| match want {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    });
    let offset = match tail.split_first() {
        Some((b'.', fraction)) => {
            let digits = fraction
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            if digits == 0 {
                return false;
            }
            &fraction[digits..]
        }
        _ => tail,
    };
    let offset_fits = match offset {
        [b'Z'] => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => {
            [h1, h2, m1, m2].iter().all(|byte| byte.is_ascii_digit())
        }
        _ => false,
    };
    fits && offset_fits
}

#[cfg(test)]
mod tests;
