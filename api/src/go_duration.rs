//! Durations as Go writes and reads them: `1h30m`, `-1.5s`, `0`.

use crate::decode::time_quoted as quoted;

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", MINUTE),
    ("h", HOUR),
];
const HALF: u64 = 1 << 63;

/// Nanoseconds, or why it is none in Go's words, which begin with `time: `.
pub fn parse(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {}", quoted(text));
    let (is_negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if unsigned == "0" {
        return Ok(0);
    }
    let mut rest = unsigned;
    let mut total: u64 = 0;
    loop {
        let (part, behind) = part(rest, text)?;
        total = total
            .checked_add(part)
            .filter(|sum| *sum <= HALF)
            .ok_or_else(invalid)?;
        rest = behind;
        if rest.is_empty() {
            break;
        }
    }
    match (i64::try_from(total), is_negative) {
        (Ok(total), true) => Ok(-total),
        (Ok(total), false) => Ok(total),
        (Err(_), true) => Ok(i64::MIN),
        (Err(_), false) => Err(invalid()),
    }
}

/// As Go writes a duration: `1h0m0.5s`, and below a second in the largest unit that is not more.
pub fn format(nanoseconds: u64) -> String {
    let small = match nanoseconds {
        0 => return "0s".to_owned(),
        1..1_000 => Some((1, "ns")),
        1_000..1_000_000 => Some((1_000, "\u{b5}s")),
        1_000_000..1_000_000_000 => Some((1_000_000, "ms")),
        _ => None,
    };
    if let Some((unit, name)) = small {
        return with_fraction(nanoseconds, unit, name);
    }
    let seconds = with_fraction(nanoseconds % MINUTE, SECOND, "s");
    match (nanoseconds / HOUR, nanoseconds % HOUR / MINUTE) {
        (0, 0) => seconds,
        (0, minutes) => format!("{minutes}m{seconds}"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}"),
    }
}

fn with_fraction(nanoseconds: u64, unit: u64, name: &str) -> String {
    let (whole, rest) = (nanoseconds / unit, nanoseconds % unit);
    if rest == 0 {
        return format!("{whole}{name}");
    }
    let digits = unit.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    format!("{whole}.{}{name}", fraction.trim_end_matches('0'))
}

/// A number and its unit, and what is behind them.
fn part<'a>(text: &'a str, whole: &str) -> Result<(u64, &'a str), String> {
    let invalid = || format!("time: invalid duration {}", quoted(whole));
    let (before, behind) = digits(text);
    let (fraction, behind) = behind.strip_prefix('.').map_or(("", behind), digits);
    if before.is_empty() && fraction.is_empty() {
        return Err(invalid());
    }
    let end = behind
        .find(|one: char| one == '.' || one.is_ascii_digit())
        .unwrap_or(behind.len());
    let (name, behind) = behind.split_at(end);
    if name.is_empty() {
        return Err(format!("time: missing unit in duration {}", quoted(whole)));
    }
    let Some((_, unit)) = UNITS.iter().find(|(own, _)| *own == name) else {
        return Err(format!(
            "time: unknown unit {} in duration {}",
            quoted(name),
            quoted(whole)
        ));
    };
    let before: u64 = match before {
        "" => 0,
        number => number.parse().map_err(|_| invalid())?,
    };
    let nanoseconds = before.checked_mul(*unit).ok_or_else(invalid)?;
    let rest = nanoseconds.checked_add(of_unit(fraction, *unit));
    let part = rest.filter(|sum| *sum <= HALF).ok_or_else(invalid)?;
    Ok((part, behind))
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at(end)
}

/// The digits behind a point, in nanoseconds. Those too small to count are left out.
fn of_unit(fraction: &str, unit: u64) -> u64 {
    let digits: String = fraction.chars().take(18).collect();
    let number: u64 = digits.parse().unwrap_or_default();
    let scale: f64 = digits.chars().map(|_| 10.0).product();
    let nanoseconds = number as f64 * (unit as f64 / scale);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // At most one unit.
    {
        nanoseconds as u64
    }
}

#[cfg(test)]
mod tests;
