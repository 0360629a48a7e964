//! What a new status of a job may say, whoever manages it. A rule is looked at only where one of
//! the values it speaks of changes, so that a status of old does not stand in the way.

use super::{count, has_condition, indexes, validate};
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::object::Object;
use crate::{json, names, print};
use serde_json::Value;

const UNCOUNTED: &str = "uncountedTerminatedPods";

/// A job, seen for its status.
struct Seen<'a> {
    job: &'a Object,
    spec: &'a Value,
    status: &'a Value,
}

impl<'a> Seen<'a> {
    fn of(job: &'a Object) -> Self {
        Self {
            job,
            spec: job.get(&["spec"]).unwrap_or(&Value::Null),
            status: job.get(&["status"]).unwrap_or(&Value::Null),
        }
    }

    fn is(&self, kind: &str) -> bool {
        has_condition(self.job, kind, "True")
    }

    fn is_finished(&self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    fn value(&self, name: &str) -> &'a Value {
        json::get(self.status, name)
    }

    fn has(&self, name: &str) -> bool {
        json::has(self.status, name)
    }

    fn text(&self, name: &str) -> &'a str {
        json::text(self.status, name)
    }

    fn count(&self, name: &str) -> i64 {
        count(self.job, name)
    }

    fn seconds(&self, name: &str) -> Option<i64> {
        print::epoch_seconds(self.text(name))
    }
}

/// The new status beside the old one.
struct Change<'a> {
    new: Seen<'a>,
    old: Seen<'a>,
    path: Path,
    errors: ErrorList,
}

pub fn update(new: &Object, old: &Object) -> ErrorList {
    let mut change = Change {
        new: Seen::of(new),
        old: Seen::of(old),
        path: Path::root("status"),
        errors: ErrorList::new(),
    };
    change.values();
    change.conditions();
    change.times();
    change.finished();
    change.indexes();
    change.success();
    change.transitions();
    change.errors
}

impl Change<'_> {
    fn changes(&self, name: &str) -> bool {
        !json::same(self.new.value(name), self.old.value(name))
    }

    fn turns(&self, kind: &str) -> bool {
        self.new.is(kind) != self.old.is(kind)
    }

    fn finish_turns(&self) -> bool {
        self.new.is_finished() != self.old.is_finished()
    }

    fn refuse_conditions(&mut self, is_wrong: bool, detail: &str) {
        if is_wrong {
            let path = self.path.child("conditions");
            self.errors.push(FieldError::invalid_unshown(&path, detail));
        }
    }

    fn refuse(&mut self, is_wrong: bool, name: &str, detail: &str) {
        if is_wrong {
            let value = match name {
                "active" | "succeeded" | "failed" => self.new.count(name).into(),
                name => self.new.value(name).clone(),
            };
            let error = FieldError::invalid(&self.path.child(name), value, detail);
            self.errors.push(match name {
                UNCOUNTED => error.as_go("io.k8s.api.batch.v1.UncountedTerminatedPods"),
                _ => error,
            });
        }
    }

    fn require(&mut self, is_wrong: bool, name: &str, detail: &str) {
        if is_wrong {
            self.errors
                .push(FieldError::required(&self.path.child(name), detail));
        }
    }

    fn values(&mut self) {
        for name in ["active", "succeeded", "failed", "ready", "terminating"] {
            checks::nonnegative(&mut self.errors, self.new.status, name, &self.path);
        }
        let uncounted = self.new.value(UNCOUNTED);
        let path = self.path.child(UNCOUNTED);
        let mut seen = Vec::new();
        for list in ["succeeded", "failed"] {
            for (index, uid) in json::list(uncounted, list).iter().enumerate() {
                let path = path.child(list).index(index);
                if uid == "" {
                    self.errors
                        .push(FieldError::invalid(&path, "", "must not be empty"));
                } else if seen.contains(&uid) {
                    self.errors.push(FieldError::duplicate(&path, uid.clone()));
                } else {
                    seen.push(uid);
                }
            }
        }
    }

    fn conditions(&mut self) {
        let complete = self.new.is("Complete");
        self.refuse_conditions(
            (self.turns("Complete") || self.turns("Failed")) && complete && self.new.is("Failed"),
            "cannot set Complete=True and Failed=true conditions",
        );
        self.refuse_conditions(
            (self.turns("Complete") || self.turns("FailureTarget"))
                && complete
                && self.new.is("FailureTarget"),
            "cannot set Complete=True and FailureTarget=true conditions",
        );
    }

    fn times(&mut self) {
        const TIME: &str = "completionTime";
        let complete = self.new.is("Complete");
        let relevant = self.turns("Complete") || self.changes(TIME);
        self.refuse(
            relevant && self.new.has(TIME) && !complete,
            TIME,
            "cannot set completionTime when there is no Complete=True condition",
        );
        self.require(
            relevant && !self.new.has(TIME) && complete,
            TIME,
            "completionTime is required for Complete jobs",
        );
        let [start, end] = ["startTime", TIME].map(|name| self.new.seconds(name));
        let is_before = start.zip(end).is_some_and(|(start, end)| end < start);
        self.refuse(
            (self.changes("startTime") || self.changes(TIME)) && is_before,
            TIME,
            "must be equal to or after `startTime`",
        );
    }

    fn finished(&mut self) {
        let finished = self.new.is_finished();
        let turns = self.finish_turns();
        self.refuse_conditions(
            (self.turns("Failed") || self.changes("failedIndexes"))
                && self.new.is("Failed")
                && !self.new.is("FailureTarget"),
            "cannot set Failed=True condition without the FailureTarget=true condition",
        );
        self.refuse_conditions(
            (self.turns("Complete") || self.turns("SuccessCriteriaMet"))
                && self.new.is("Complete")
                && !self.new.is("SuccessCriteriaMet"),
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        );
        self.refuse(
            (turns || self.changes("active")) && finished && self.new.count("active") > 0,
            "active",
            "active>0 is invalid for finished job",
        );
        let nothing_to_do = json::flag(self.new.spec, "suspend")
            && json::int(self.new.spec, "completions") == Some(0);
        self.require(
            (turns || self.changes("startTime"))
                && !nothing_to_do
                && finished
                && !self.new.has("startTime"),
            "startTime",
            "startTime is required for finished job",
        );
        let uncounted = self.new.value(UNCOUNTED);
        let is_counted = ["succeeded", "failed"]
            .iter()
            .all(|list| json::list(uncounted, list).is_empty());
        self.refuse(
            (turns || self.changes(UNCOUNTED)) && finished && !is_counted,
            UNCOUNTED,
            "must be empty for finished job",
        );
    }

    fn indexes(&mut self) {
        let completions = json::int(self.new.spec, "completions");
        let has_limit = json::has(self.new.spec, "backoffLimitPerIndex");
        let (completed, failed) = ("completedIndexes", "failedIndexes");
        let [completed_changes, failed_changes] = [completed, failed].map(|n| self.changes(n));
        let fault = |name: &str, completions: i64| {
            let error = indexes::count(self.new.text(name), completions).err()?;
            Some(format!("error parsing {name}: {error}"))
        };
        let relevant = [
            completed_changes,
            failed_changes && has_limit && self.new.has(failed),
        ];
        let faults = [completed, failed].map(|name| completions.and_then(|max| fault(name, max)));
        for ((name, relevant), fault) in [completed, failed].into_iter().zip(relevant).zip(faults) {
            if let Some(detail) = fault.filter(|_| relevant) {
                self.refuse(true, name, &detail);
            }
        }
        self.refuse(
            completed_changes
                && !self.new.text(completed).is_empty()
                && !validate::is_indexed(self.new.spec),
            completed,
            "cannot set non-empty completedIndexes when non-indexed completion mode",
        );
        self.refuse(
            failed_changes && !has_limit && self.new.has(failed),
            failed,
            "cannot set non-null failedIndexes when backoffLimitPerIndex is null",
        );
        let overlap = completions.and_then(|completions| {
            indexes::overlap(self.new.text(completed), self.new.text(failed), completions)
        });
        if let Some(index) = overlap.filter(|_| completed_changes || failed_changes) {
            let detail = format!("failedIndexes and completedIndexes overlap at index: {index}");
            self.refuse(true, failed, &detail);
        }
    }

    fn success(&mut self) {
        let finished = self.new.is_finished();
        self.refuse(
            (self.finish_turns() || self.changes("terminating"))
                && finished
                && self.new.count("terminating") > 0,
            "terminating",
            "terminating>0 is invalid for finished job",
        );
        self.refuse(
            (self.changes("ready") || self.changes("active"))
                && self.new.count("ready") > self.new.count("active"),
            "ready",
            "cannot set more ready pods than active",
        );
        let met = self.new.is("SuccessCriteriaMet");
        self.refuse_conditions(
            met && self.new.is("Failed"),
            "cannot set SuccessCriteriaMet=True and Failed=true conditions",
        );
        self.refuse_conditions(
            met && self.new.is("FailureTarget"),
            "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        );
        self.refuse_conditions(
            json::has(self.new.spec, "successPolicy") && !met && self.new.is("Complete"),
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
        );
    }

    /// From one status to the next.
    fn transitions(&mut self) {
        for kind in ["Failed", "Complete", "FailureTarget"] {
            let detail = format!("cannot disable the terminal {kind}=True condition");
            self.refuse_conditions(self.old.is(kind) && !self.new.is(kind), &detail);
        }
        let shrinks = |name: &str| self.new.count(name) < self.old.count(name);
        let [failed_shrinks, succeeded_shrinks] = ["failed", "succeeded"].map(shrinks);
        let spec = self.new.spec;
        let may_shrink = validate::is_indexed(spec)
            && json::get(spec, "completions") == json::get(spec, "parallelism");
        self.refuse(
            failed_shrinks,
            "failed",
            "cannot decrease the failed counter",
        );
        self.refuse(
            succeeded_shrinks && !may_shrink,
            "succeeded",
            "cannot decrease the succeeded counter",
        );
        const TIME: &str = "completionTime";
        self.refuse(
            self.new.has(TIME) && self.old.has(TIME) && self.changes(TIME),
            TIME,
            names::IMMUTABLE,
        );
        let resumes = self.old.is("Suspended") && has_condition(self.new.job, "Suspended", "False");
        self.refuse(
            self.changes("startTime")
                && !resumes
                && self.old.has("startTime")
                && !json::flag(spec, "suspend"),
            "startTime",
            "field is immutable for unsuspended job once set",
        );
        let [met_before, met] = [&self.old, &self.new].map(|seen| seen.is("SuccessCriteriaMet"));
        self.refuse_conditions(
            met_before && !met,
            "cannot disable the SuccessCriteriaMet=True condition",
        );
        self.refuse_conditions(
            self.old.is("Complete") && !met_before && met,
            "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
        );
    }
}
