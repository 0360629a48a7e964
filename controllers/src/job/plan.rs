//! Looks at a job and its pods, says how the job stands, and what to do with its pods. Pure.
//!
//! Order matters: what earlier passes decided stands; then failures are looked for, then success.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use coracle_client::clock;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::backoff::Record;
use super::conditions::{self, FAILED, FAILURE_TARGET, SUCCESS_CRITERIA_MET};
use super::failure_policy::{Verdict, judge};
use super::intervals::Intervals;
use super::manage::{self, Action};
use super::seen::{self, Seen};
use super::spec::Spec;
use super::success_policy;
use crate::pods;

/// What the caches and the loop's memory show.
#[derive(Debug)]
pub(super) struct Observed<'a> {
    pub job: &'a Job,
    pub spec: &'a Spec<'a>,
    /// The job's own, adopted ones among them.
    pub pods: Vec<Arc<Pod>>,
    /// Uids of pods that are being adopted: they have the finalizer by then.
    pub adopted: HashSet<String>,
    /// Uids of pods whose finalizer was removed, which the cache has not seen yet.
    pub releasing: HashSet<String>,
    /// Whether the cache has seen what earlier passes created and deleted.
    pub satisfied: bool,
    pub backoff: Record,
}

/// How a job stands. Acting on it changes it, and then it says what the status shall be.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    pub job: &'a Job,
    pub spec: &'a Spec<'a>,
    pub status: JobStatus,
    pub pods: Vec<Seen>,
    pub satisfied: bool,
    pub succeeded: i32,
    pub failed: i32,
    pub active: i32,
    pub ready: i32,
    pub terminating: i32,
    /// As the status had it, and with the pods that succeeded since.
    pub completed_before: Intervals,
    pub completed: Intervals,
    /// With limits per index alone.
    pub failed_indexes: Option<Intervals>,
    /// The failed pod of each index that waits for its replacement, which takes over its count.
    pub awaiting_replacement: BTreeMap<i32, Arc<Pod>>,
    /// With the failures that this pass saw.
    pub backoff: Record,
    /// How the job ends, once it is decided.
    pub end: Option<JobCondition>,
    /// When its deadline is due.
    pub deadline_in: Option<Duration>,
}

pub(super) fn plan<'a>(observed: Observed<'a>, now: Timestamp) -> (Pass<'a>, Action) {
    let mut pass = Pass::of(observed);
    if pass.status.start_time.is_none() && !pass.spec.suspended {
        pass.status.start_time = Some(Time(clock::seconds(now)));
    }
    pass.end = pass.decided(now);
    if pass.end.is_none() {
        pass.end = pass.limits(now);
    }
    if pass.spec.indexed {
        pass.count_indexes();
        if pass.end.is_none() {
            pass.end = pass.index_limits(now).or_else(|| pass.success(now));
        }
    }
    let action = match &pass.end {
        Some(_) => Action::End(pass.active_pods().map(|one| one.pod.clone()).collect()),
        None if !pass.satisfied || pass.job.metadata.deletion_timestamp.is_some() => Action::NotNow,
        None => manage::decide(&pass, now),
    };
    (pass, action)
}

impl<'a> Pass<'a> {
    fn of(observed: Observed<'a>) -> Self {
        let (job, spec) = (observed.job, observed.spec);
        let mut status = job.status.clone().unwrap_or_default();
        let uncounted = status.uncounted_terminated_pods.get_or_insert_default();
        let uncounted = uncounted.clone();
        let see = |pod: Arc<Pod>| {
            let uid = seen::uid(&pod);
            let has = seen::has_finalizer(&pod) || observed.adopted.contains(uid);
            let tracked = has && !observed.releasing.contains(uid);
            Seen::of(pod, spec, tracked)
        };
        let mut pass = Self {
            pods: observed.pods.into_iter().map(see).collect(),
            job,
            spec,
            status,
            satisfied: observed.satisfied,
            succeeded: 0,
            failed: 0,
            active: 0,
            ready: 0,
            terminating: 0,
            completed_before: Intervals::default(),
            completed: Intervals::default(),
            failed_indexes: None,
            awaiting_replacement: BTreeMap::new(),
            backoff: observed.backoff,
            end: None,
            deadline_in: None,
        };
        if spec.indexed {
            // Indexes are then completed in order.
            pass.pods.sort_by_key(|one| one.index);
        }
        pass.count(&uncounted);
        pass
    }

    fn count(&mut self, uncounted: &UncountedTerminatedPods) {
        let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let listed = |list: &Option<Vec<String>>| list.iter().flatten().cloned().collect();
        let (succeeded, failed): (HashSet<String>, HashSet<String>) =
            (listed(&uncounted.succeeded), listed(&uncounted.failed));
        let valid = |one: &&Seen| one.tracked && one.is_valid(self.spec);
        let fresh = self.pods.iter().filter(valid);
        let (new_succeeded, new_failed) = (
            fresh
                .clone()
                .filter(|one| one.succeeded() && !succeeded.contains(one.uid())),
            fresh.filter(|one| one.failed && !failed.contains(one.uid())),
        );
        let policy = self.spec.failure_policy;
        let counted = new_failed
            .clone()
            .filter(|one| judge(policy, &one.pod).counts());
        self.succeeded = self.status.succeeded.unwrap_or(0)
            + number(new_succeeded.clone().count())
            + number(succeeded.len());
        self.failed =
            self.status.failed.unwrap_or(0) + number(counted.count()) + number(failed.len());
        let pod = |one: &'_ Seen| one.pod.clone();
        let (new_succeeded, new_failed): (Vec<_>, Vec<_>) = (
            new_succeeded.map(pod).collect(),
            new_failed.map(pod).collect(),
        );
        self.backoff = self.backoff.with(
            new_succeeded.iter().map(Arc::as_ref),
            new_failed.iter().map(Arc::as_ref),
        );
        let active = || self.pods.iter().filter(|one| one.is_active());
        let ready = active().filter(|one| pods::is_ready(&one.pod)).count();
        let terminating = self
            .pods
            .iter()
            .filter(|one| pods::is_terminating(&one.pod));
        (self.active, self.ready) = (number(active().count()), number(ready));
        self.terminating = number(terminating.count());
    }

    pub(super) fn active_pods(&self) -> impl Iterator<Item = &Seen> {
        self.pods.iter().filter(|one| one.is_active())
    }

    pub(super) fn active_indexes(&self) -> BTreeSet<i32> {
        self.active_pods().filter_map(|one| one.index).collect()
    }

    /// What an earlier pass decided, or the failure policy says.
    fn decided(&self, now: Timestamp) -> Option<JobCondition> {
        let known = self.status.conditions.as_deref().unwrap_or_default();
        if let Some(met) = conditions::holding(known, SUCCESS_CRITERIA_MET) {
            return Some(met.clone());
        }
        if let Some(target) = conditions::holding(known, FAILURE_TARGET) {
            return Some(JobCondition {
                type_: FAILED.to_owned(),
                ..fresh(target, now)
            });
        }
        let policy = self.spec.failure_policy?;
        let mut failed = self.pods.iter().filter(|one| one.failed);
        let message = failed.find_map(|one| match judge(Some(policy), &one.pod) {
            Verdict::FailJob(message) => Some(message),
            _ => None,
        })?;
        Some(failure("PodFailurePolicy", &message, now))
    }

    fn limits(&mut self, now: Timestamp) -> Option<JobCondition> {
        if self.failed > self.spec.backoff_limit || self.restarted_too_often() {
            let message = "Job has reached the specified backoff limit";
            return Some(failure("BackoffLimitExceeded", message, now));
        }
        let seconds = self.spec.active_deadline_seconds;
        let seconds = seconds.filter(|_| !self.spec.suspended)?;
        let start = self.status.start_time.as_ref()?.0;
        let left = SignedDuration::from_secs(seconds) - now.duration_since(start);
        if left <= SignedDuration::ZERO {
            let message = "Job was active longer than specified deadline";
            return Some(failure("DeadlineExceeded", message, now));
        }
        self.deadline_in = Duration::try_from(left).ok();
        None
    }

    /// Containers that are restarted in place count as well.
    fn restarted_too_often(&self) -> bool {
        if !self.spec.restarts_containers() {
            return false;
        }
        let live = self
            .pods
            .iter()
            .filter(|one| matches!(pods::phase(&one.pod), "Running" | "Pending"));
        let statuses = live
            .filter_map(|one| one.pod.status.as_ref())
            .flat_map(|status| {
                let initial = status.init_container_statuses.iter().flatten();
                initial.chain(status.container_statuses.iter().flatten())
            });
        let restarts: i64 = statuses.map(|one| i64::from(one.restart_count)).sum();
        // A limit of none allows none, any other is reached.
        restarts >= i64::from(self.spec.backoff_limit.max(1))
    }

    fn count_indexes(&mut self) {
        let spec = self.spec;
        let end = spec.index_end();
        let text = self.status.completed_indexes.as_deref().unwrap_or_default();
        self.completed_before = Intervals::parse(text, end);
        let indexes = |test: &dyn Fn(&Seen) -> bool| -> BTreeSet<i32> {
            let fitting = self.pods.iter().filter(|one| one.tracked && test(one));
            fitting.filter_map(|one| one.valid_index(spec)).collect()
        };
        self.completed = self.completed_before.with(indexes(&Seen::succeeded));
        self.succeeded = self.completed.count();
        let Some(limit) = spec.backoff_limit_per_index else {
            return;
        };
        let text = self.status.failed_indexes.as_deref().unwrap_or_default();
        let failed = Intervals::parse(text, end).with(indexes(&|one| {
            one.failed
                && match judge(spec.failure_policy, &one.pod) {
                    Verdict::FailIndex => true,
                    verdict => verdict.counts() && seen::index_failures(&one.pod) >= limit,
                }
        }));
        self.awaiting_replacement = self.awaiting(&failed);
        self.failed_indexes = Some(failed);
    }

    /// The last pod of each index that failed and has no successor yet.
    fn awaiting(&self, failed_indexes: &Intervals) -> BTreeMap<i32, Arc<Pod>> {
        let active = self.active_indexes();
        let mut last: BTreeMap<i32, Arc<Pod>> = BTreeMap::new();
        for one in self.pods.iter().filter(|one| one.tracked && one.failed) {
            let Some(index) = one.valid_index(self.spec) else {
                continue;
            };
            let settled = self.completed.contains(index) || failed_indexes.contains(index);
            if settled || active.contains(&index) {
                continue;
            }
            let later = last.get(&index).is_none_or(|known| {
                let standing = |pod: &Pod| {
                    (
                        seen::index_all_failures(pod),
                        super::backoff::finished_at(pod),
                    )
                };
                let ((known, known_end), (new, new_end)) = (standing(known), standing(&one.pod));
                known <= new && known_end <= new_end
            });
            if later {
                last.insert(index, one.pod.clone());
            }
        }
        last
    }

    fn index_limits(&self, now: Timestamp) -> Option<JobCondition> {
        let failed = self.failed_indexes.as_ref()?.count();
        if self.spec.max_failed_indexes.is_some_and(|max| failed > max) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return Some(failure("MaxFailedIndexesExceeded", message, now));
        }
        let all = failed > 0 && failed + self.completed.count() >= self.spec.index_end();
        all.then(|| failure("FailedIndexes", "Job has failed indexes", now))
    }

    fn success(&self, now: Timestamp) -> Option<JobCondition> {
        let end = self.spec.index_end();
        let message = success_policy::met(self.spec.success_policy, end, &self.completed)?;
        let (kind, reason) = (SUCCESS_CRITERIA_MET, "SuccessPolicy");
        Some(conditions::new(kind, true, reason, &message, now))
    }
}

/// The failure is decided; Failed follows when all pods are counted and gone.
fn failure(reason: &str, message: &str, now: Timestamp) -> JobCondition {
    conditions::new(FAILURE_TARGET, true, reason, message, now)
}

/// The same condition, of now.
pub(super) fn fresh(condition: &JobCondition, now: Timestamp) -> JobCondition {
    let (reason, message) = (&condition.reason, &condition.message);
    conditions::new(
        &condition.type_,
        true,
        reason.as_deref().unwrap_or_default(),
        message.as_deref().unwrap_or_default(),
        now,
    )
}
