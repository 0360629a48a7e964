//! Decides whether a job is due. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{CronJob, CronJobStatus};

use super::timetable::Timetable;

/// Waiting goes on so long after a due time, for clocks that differ a little.
const SKEW: SignedDuration = SignedDuration::from_millis(100);
/// More missed times than this are worth a warning.
const MISSED_MAX: i64 = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Nothing is due.
    Wait,
    /// The deadline for starting has passed.
    TooLate(Timestamp),
    /// The job of this time was started before.
    Done,
    /// Another still runs, and they may not run side by side.
    Forbidden,
    Start(Timestamp),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub decision: Decision,
    pub missed_many: bool,
    /// When to look again; never, when no time comes any more.
    pub again_in: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("time difference between two schedules is less than 1 second")]
pub(super) struct NoSuchTime;

/// Times that were due and not served.
struct Unmet {
    /// Since when one looks.
    since: Timestamp,
    last: Option<Timestamp>,
    count: i64,
}

pub(super) fn plan(
    cron: &CronJob,
    status: &CronJobStatus,
    table: &Timetable,
    now: Timestamp,
) -> Result<Plan, NoSuchTime> {
    let deadline = cron.spec.starting_deadline_seconds;
    let unmet = unmet(cron, status, table, now, deadline)?;
    let decision = match unmet.last {
        None => Decision::Wait,
        Some(due) => decide(cron, status, due, deadline, now),
    };
    Ok(Plan {
        decision,
        missed_many: unmet.last.is_some() && unmet.count > MISSED_MAX,
        again_in: next_in(cron, status, table, now),
    })
}

fn decide(
    cron: &CronJob,
    status: &CronJobStatus,
    due: Timestamp,
    deadline: Option<i64>,
    now: Timestamp,
) -> Decision {
    if deadline.is_some_and(|seconds| add_seconds(due, seconds) < now) {
        return Decision::TooLate(due);
    }
    let name = job_name(cron, due);
    let mut active = status.active.iter().flatten();
    let listed = active.any(|one| one.name.as_deref() == Some(&name));
    let last = status.last_schedule_time.as_ref().map(|time| time.0);
    if listed || last == Some(due) {
        return Decision::Done;
    }
    let busy = status
        .active
        .as_ref()
        .is_some_and(|active| !active.is_empty());
    if busy && policy(cron) == "Forbid" {
        return Decision::Forbidden;
    }
    Decision::Start(due)
}

pub(super) fn policy(cron: &CronJob) -> &str {
    cron.spec.concurrency_policy.as_deref().unwrap_or("Allow")
}

/// One time gives one name, so that no job is made twice.
pub(super) fn job_name(cron: &CronJob, due: Timestamp) -> String {
    let name = cron.metadata.name.as_deref().unwrap_or_default();
    format!("{name}-{}", due.as_second() / 60)
}

/// How long until the schedule is due next.
pub(super) fn next_in(
    cron: &CronJob,
    status: &CronJobStatus,
    table: &Timetable,
    now: Timestamp,
) -> Option<Duration> {
    // What was missed is no reason to look sooner; the deadline plays no part.
    let from = match unmet(cron, status, table, now, None) {
        Ok(Unmet {
            last: Some(last), ..
        }) => last,
        Ok(Unmet {
            since, count: 0, ..
        }) => since,
        _ => now,
    };
    let next = table.next(from)?.checked_add(SKEW).ok()?;
    Some(Duration::try_from(next.duration_since(now)).unwrap_or_default())
}

fn unmet(
    cron: &CronJob,
    status: &CronJobStatus,
    table: &Timetable,
    now: Timestamp,
    deadline: Option<i64>,
) -> Result<Unmet, NoSuchTime> {
    let created = cron.metadata.creation_timestamp.as_ref();
    let since = status.last_schedule_time.as_ref().or(created);
    let mut since = since.map_or(now, |time| time.0);
    if let Some(seconds) = deadline {
        // Nothing before this would be started.
        since = since.max(add_seconds(now, -seconds));
    }
    let none = |last, count| Unmet { since, last, count };
    let first = table.next(since).ok_or(NoSuchTime)?;
    if now < first {
        return Ok(none(None, 0));
    }
    let second = table.next(first).ok_or(NoSuchTime)?;
    if now < second {
        return Ok(none(Some(first), 0));
    }
    let interval = second.duration_since(first).as_secs();
    if interval < 1 {
        return Err(NoSuchTime);
    }
    // As many as would fit if all were as far apart; from the last but one of these on, one by one.
    let count = now.duration_since(first).as_secs() / interval + 1;
    let mut last = None;
    let mut time = add_seconds(first, (count - 2) * interval);
    while let Some(next) = table.next(time).filter(|next| *next <= now) {
        (time, last) = (next, Some(next));
    }
    Ok(none(last, count))
}

fn add_seconds(time: Timestamp, seconds: i64) -> Timestamp {
    time.saturating_add(SignedDuration::from_secs(seconds))
        .expect("a duration of seconds never fails to add with saturation")
}
