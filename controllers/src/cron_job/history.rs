//! Which finished jobs are more than a history shall have. Pure.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::{CronJob, Job};

/// The condition that ended a job, if it ended.
pub(super) fn end_of(job: &Job) -> Option<&str> {
    let mut conditions = job.status.as_ref()?.conditions.iter().flatten();
    let end = conditions
        .find(|one| matches!(one.type_.as_str(), "Complete" | "Failed") && one.status == "True")?;
    Some(&end.type_)
}

/// The oldest first.
pub(super) fn surplus(cron: &CronJob, jobs: &[Arc<Job>]) -> Vec<Arc<Job>> {
    let limits = [
        ("Complete", cron.spec.successful_jobs_history_limit),
        ("Failed", cron.spec.failed_jobs_history_limit),
    ];
    let mut surplus = Vec::new();
    for (end, limit) in limits {
        let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else {
            continue;
        };
        let ended = jobs.iter().filter(|job| end_of(job) == Some(end));
        let mut ended: Vec<&Arc<Job>> = ended.collect();
        // Who never started comes last.
        let start = |job: &Job| {
            let start = job
                .status
                .as_ref()
                .and_then(|status| status.start_time.as_ref());
            let start = start.map(|time| time.0);
            (start.is_none(), start, job.metadata.name.clone())
        };
        ended.sort_by_key(|job| start(job));
        let count = ended.len().saturating_sub(limit);
        // Those that go already count, and need nothing more.
        let going = |job: &&&Arc<Job>| job.metadata.deletion_timestamp.is_none();
        surplus.extend(
            ended
                .iter()
                .take(count)
                .filter(going)
                .map(|job| Arc::clone(job)),
        );
    }
    surplus
}
