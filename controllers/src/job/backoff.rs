//! How long a failed pod's replacement waits: ten seconds, doubled with each failure in a row,
//! ten minutes at most. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use crate::pods;

const FIRST: Duration = Duration::from_secs(10);
const MAX: Duration = Duration::from_secs(10 * 60);

/// What is remembered of a job between passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// Since the last pod that succeeded.
    pub failures: i32,
    pub last_failure: Option<Timestamp>,
}

impl Record {
    /// With the pods that finished since.
    pub(super) fn with<'a>(
        self,
        succeeded: impl Iterator<Item = &'a Pod>,
        failed: impl Iterator<Item = &'a Pod>,
    ) -> Self {
        let last_success = succeeded.map(finished_at).max();
        let failed = failed.map(finished_at);
        let failed: Vec<_> = failed
            .filter(|at| last_success.is_none_or(|success| *at > success))
            .collect();
        let before = match last_success {
            Some(_) => Self::default(),
            None => self,
        };
        Self {
            failures: before.failures + i32::try_from(failed.len()).unwrap_or(i32::MAX),
            last_failure: failed.into_iter().max().or(before.last_failure),
        }
    }

    pub(super) fn remaining(self, now: Timestamp) -> Duration {
        let last = self.last_failure;
        last.map_or(Duration::ZERO, |last| remaining(self.failures, last, now))
    }
}

/// How long to wait after so many failures, the last of them then.
pub(super) fn remaining(failures: i32, last: Timestamp, now: Timestamp) -> Duration {
    let Ok(before) = u32::try_from(failures - 1) else {
        return Duration::ZERO;
    };
    let factor = 1_u32.checked_shl(before).unwrap_or(u32::MAX);
    let wait = FIRST.saturating_mul(factor).min(MAX);
    let wait = SignedDuration::try_from(wait).expect("minutes") - now.duration_since(last);
    Duration::try_from(wait).unwrap_or(Duration::ZERO)
}

/// When a pod finished, by its containers; else by what is nearest.
pub(super) fn finished_at(pod: &Pod) -> Timestamp {
    let meta = &pod.metadata;
    containers_ended(pod)
        .or_else(|| {
            let ready = pods::condition(pod, "Ready")?;
            let since = ready.last_transition_time.as_ref();
            since.filter(|_| ready.status == "False").map(|time| time.0)
        })
        .or_else(|| {
            let grace = SignedDuration::from_secs(meta.deletion_grace_period_seconds.unwrap_or(0));
            meta.deletion_timestamp.as_ref()?.0.checked_sub(grace).ok()
        })
        .or_else(|| meta.creation_timestamp.as_ref().map(|time| time.0))
        .unwrap_or_default()
}

/// When the last container ended, sidecars among them; `None` while one may still run.
fn containers_ended(pod: &Pod) -> Option<Timestamp> {
    let status = pod.status.as_ref()?;
    let initial = pod
        .spec
        .iter()
        .flat_map(|spec| spec.init_containers.iter().flatten());
    let sidecars: Vec<&str> = initial
        .filter(|one| one.restart_policy.as_deref() == Some("Always"))
        .map(|one| one.name.as_str())
        .collect();
    let ordinary = status.container_statuses.iter().flatten();
    let initial = status.init_container_statuses.iter().flatten();
    let counted = ordinary.chain(initial.filter(|one| sidecars.contains(&one.name.as_str())));
    let ended = |container: &ContainerStatus| {
        let ended = container.state.as_ref()?.terminated.as_ref()?;
        ended.finished_at.as_ref().map(|time| time.0)
    };
    let times: Option<Vec<Timestamp>> = counted.map(ended).collect();
    times?.into_iter().max()
}
