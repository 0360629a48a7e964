//! Counts finished pods so that a crash at any point loses or doubles none. Pure.
//!
//! Uids of pods that finished are written to the status first; then their finalizers are removed;
//! then the status counts them and forgets the uids. A pod whose uid is in the status and that
//! has no finalizer any more is counted, whoever looks next. Indexes need no uids: an index that
//! is completed already is not completed again.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{JobCondition, JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;

use super::conditions::{self, COMPLETE, FAILED, FAILURE_TARGET, SUCCESS_CRITERIA_MET, SUSPENDED};
use super::failure_policy::judge;
use super::manage::Action;
use super::plan::{Pass, fresh};
use super::seen::Seen;

/// Uids that the status may hold, which keeps it below some 20 KB; the rest waits for another
/// pass. Upstream's bound.
pub(super) const UNCOUNTED_MAX: usize = 500;

/// What became of an action.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    pub created: i32,
    pub removed: i32,
    pub removed_ready: i32,
}

/// An event, when the status that it goes with is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Suspended,
    Resumed,
}

/// What the first write of the status is followed by.
#[derive(Debug, Default)]
pub(super) struct Counting {
    /// The status has them: their finalizers may go.
    pub release: Vec<Arc<Pod>>,
    /// Uids of pods that still have the finalizer.
    pub tracked: HashSet<String>,
    /// There are more, for another pass.
    pub more: bool,
}

impl Pass<'_> {
    /// Takes in what was done, and says what that makes of the job.
    pub(super) fn acted(&mut self, action: &Action, done: Done, now: Timestamp) -> Option<Turn> {
        let active_before = self.active;
        self.active += done.created - done.removed;
        self.ready -= done.removed_ready;
        self.terminating += done.removed;
        let managed = match action {
            Action::End(_) => {
                if done.removed != active_before || !self.satisfied {
                    // Pods may be left that the cache does not show, with finalizers.
                    self.end = None;
                }
                return None;
            }
            Action::NotNow => false,
            _ => true,
        };
        let complete = self.active == 0
            && match self.spec.completions {
                None => self.succeeded > 0,
                Some(completions) => self.succeeded >= completions,
            };
        if complete {
            let (reason, message) = (
                "CompletionsReached",
                "Reached expected number of succeeded pods",
            );
            let met = conditions::new(SUCCESS_CRITERIA_MET, true, reason, message, now);
            self.end = Some(met);
            return None;
        }
        if managed {
            self.suspend_or_resume(now)
        } else {
            None
        }
    }

    fn suspend_or_resume(&mut self, now: Timestamp) -> Option<Turn> {
        let suspended = self.spec.suspended;
        let (reason, message) = if suspended {
            ("JobSuspended", "Job suspended")
        } else {
            ("JobResumed", "Job resumed")
        };
        let wanted = conditions::new(SUSPENDED, suspended, reason, message, now);
        let since = wanted.last_transition_time.clone();
        let known = self.status.conditions.get_or_insert_default();
        if !conditions::ensure(known, wanted) {
            return None;
        }
        // A deadline runs while the job does.
        self.status.start_time = since.filter(|_| !suspended);
        Some(if suspended {
            Turn::Suspended
        } else {
            Turn::Resumed
        })
    }

    /// Enters what finished into the status.
    pub(super) fn count_finished(&mut self, now: Timestamp) -> Counting {
        let tracked = self.pods.iter().filter(|one| one.tracked);
        let mut counting = Counting {
            tracked: tracked.map(|one| one.uid().to_owned()).collect(),
            ..Counting::default()
        };
        self.status.active = Some(self.active);
        self.status.ready = Some(self.ready);
        self.status.terminating = Some(self.terminating);
        let before = self
            .status
            .uncounted_terminated_pods
            .clone()
            .unwrap_or_default();
        settle(&mut self.status, &counting.tracked);
        let mut indexes = Vec::new();
        let mut uncounted = self
            .status
            .uncounted_terminated_pods
            .take()
            .unwrap_or_default();
        for one in self.pods.iter().filter(|one| one.tracked) {
            if !self.may_release(one) {
                continue;
            }
            counting.release.push(one.pod.clone());
            self.enter(one, &before, &mut uncounted, &mut indexes);
            let listed = [&uncounted.succeeded, &uncounted.failed];
            let listed = listed.map(|list| list.as_ref().map_or(0, Vec::len));
            if indexes.len() + listed.iter().sum::<usize>() >= UNCOUNTED_MAX {
                counting.more = true;
                break;
            }
        }
        self.status.uncounted_terminated_pods = Some(uncounted);
        if self.spec.indexed {
            self.completed = self.completed.with(indexes);
            self.status.succeeded = Some(self.completed.count());
            self.status.completed_indexes = Some(self.completed.to_string());
            let failed = self.failed_indexes.as_ref();
            self.status.failed_indexes = failed.map(ToString::to_string);
        }
        self.announce_end(now);
        counting
    }

    /// Whether a pod's finalizer may go: it has finished or all is over. A failed pod may have to
    /// wait for the one that takes over the failures of its index.
    fn may_release(&self, one: &Seen) -> bool {
        if self.job.metadata.deletion_timestamp.is_some() || self.end.is_some() || one.succeeded() {
            return true;
        }
        let awaits = one
            .index
            .and_then(|index| self.awaiting_replacement.get(&index));
        one.failed && awaits.is_none_or(|waiting| waiting.metadata.uid != one.pod.metadata.uid)
    }

    fn enter(
        &self,
        one: &Seen,
        before: &UncountedTerminatedPods,
        uncounted: &mut UncountedTerminatedPods,
        indexes: &mut Vec<i32>,
    ) {
        let known = |list: &Option<Vec<String>>| list.iter().flatten().any(|uid| uid == one.uid());
        if one.succeeded() && !known(&before.failed) {
            if self.spec.indexed {
                let index = one.valid_index(self.spec);
                indexes.extend(index.filter(|index| !self.completed_before.contains(*index)));
            } else if !known(&before.succeeded) {
                let list = uncounted.succeeded.get_or_insert_default();
                list.push(one.uid().to_owned());
            }
            return;
        }
        // When a job has failed, so has what had not finished.
        let failed_job = self
            .end
            .as_ref()
            .is_some_and(|end| end.type_ != SUCCESS_CRITERIA_MET);
        if (one.failed || failed_job)
            && !known(&before.failed)
            && one.is_valid(self.spec)
            && judge(self.spec.failure_policy, &one.pod).counts()
        {
            let list = uncounted.failed.get_or_insert_default();
            list.push(one.uid().to_owned());
        }
    }

    /// The conditions that say what is decided, and then the end that they lead to.
    fn announce_end(&mut self, now: Timestamp) {
        let Some(end) = self.end.take() else {
            return;
        };
        let known = self.status.conditions.get_or_insert_default();
        let last = match end.type_.as_str() {
            FAILURE_TARGET => FAILED,
            SUCCESS_CRITERIA_MET => COMPLETE,
            _ => {
                self.end = Some(end); // Announced by an earlier pass.
                return;
            }
        };
        if conditions::holding(known, &end.type_).is_none() {
            known.push(end.clone());
        }
        self.end = Some(JobCondition {
            type_: last.to_owned(),
            ..fresh(&end, now)
        });
    }
}

/// Counts pods of the status that have no finalizer any more, and forgets their uids.
pub(super) fn settle(status: &mut JobStatus, tracked: &HashSet<String>) {
    let Some(uncounted) = &mut status.uncounted_terminated_pods else {
        return;
    };
    let counts = [
        (&mut uncounted.succeeded, &mut status.succeeded),
        (&mut uncounted.failed, &mut status.failed),
    ];
    for (uids, count) in counts {
        let Some(uids) = uids else {
            continue;
        };
        let before = uids.len();
        uids.retain(|uid| tracked.contains(uid));
        let gone = i32::try_from(before - uids.len()).unwrap_or(i32::MAX);
        *count = Some(count.unwrap_or(0) + gone);
    }
}

/// Ends the job once every pod is counted and gone. Says whether it did.
pub(super) fn finish(
    status: &mut JobStatus,
    end: Option<&JobCondition>,
    terminating: i32,
    now: Timestamp,
) -> bool {
    let Some(end) = end else {
        return false;
    };
    let listed = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| !list.is_empty());
    let uncounted = status.uncounted_terminated_pods.as_ref();
    let waits = uncounted.is_some_and(|one| listed(&one.succeeded) || listed(&one.failed));
    if waits || terminating > 0 {
        return false;
    }
    let end = fresh(end, now);
    if end.type_ == COMPLETE {
        status.completion_time = end.last_transition_time.clone();
    }
    conditions::ensure(status.conditions.get_or_insert_default(), end);
    true
}

/// As it goes onto the wire, where what is zero or empty is left out.
pub(super) fn normalized(mut status: JobStatus) -> JobStatus {
    for count in [
        &mut status.active,
        &mut status.succeeded,
        &mut status.failed,
    ] {
        *count = count.filter(|count| *count != 0);
    }
    status.completed_indexes = status.completed_indexes.filter(|text| !text.is_empty());
    status.conditions = status
        .conditions
        .filter(|conditions| !conditions.is_empty());
    let uncounted = status.uncounted_terminated_pods.get_or_insert_default();
    for list in [&mut uncounted.succeeded, &mut uncounted.failed] {
        *list = list.take().filter(|list| !list.is_empty());
    }
    status
}
