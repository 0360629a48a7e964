//! What is counted of admission policies, under upstream's names.

use super::text::Text;
use super::webhooks::Series;
use crate::admission::policy::Ending;
use coracle_api::exposition::histogram::Durations;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upstream's buckets.
const SECONDS: &[f64] = &[0.000_000_5, 0.001, 0.01, 0.1, 1.0];

/// What was wrong with an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorType {
    None,
    Compile,
    OutOfBudget,
    Invalid,
}

impl ErrorType {
    /// As upstream tells them apart.
    pub fn of(ending: Ending, message: &str) -> Self {
        if ending == Ending::Holds {
            Self::None
        } else if message.starts_with("compilation") {
            Self::Compile
        } else if message.starts_with("validation failed due to running out of cost budget") {
            Self::OutOfBudget
        } else {
            Self::Invalid
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::None => "no_error",
            Self::Compile => "compile_error",
            Self::OutOfBudget => "out_of_budget",
            Self::Invalid => "invalid_error",
        }
    }
}

/// How the evaluation of an expression ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    pub policy: &'a str,
    pub binding: &'a str,
    pub error: ErrorType,
    /// `allow`, `deny`, `audit` or `warn`.
    pub action: &'static str,
    pub elapsed: Duration,
}

/// Policy, binding, error and what came of it.
type Labels = (String, String, ErrorType, &'static str);

/// Policy, binding and error.
type Changed = (String, String, ErrorType);

#[derive(Debug, Default)]
pub struct Counts {
    judged: Series<Labels, AtomicU64>,
    judged_in: Series<Labels, Durations>,
    mutated: Series<Changed, AtomicU64>,
    mutated_in: Series<Changed, Durations>,
}

impl Counts {
    pub fn judged(&self, ended: &Ended<'_>) {
        let (policy, binding) = (ended.policy.to_owned(), ended.binding.to_owned());
        let labels = (policy, binding, ended.error, ended.action);
        if let Some(taken) = self
            .judged_in
            .get(labels.clone(), || Durations::new(SECONDS))
        {
            taken.add(ended.elapsed);
        }
        self.judged.count(labels);
    }

    pub fn mutated(&self, policy: &str, binding: &str, error: ErrorType, elapsed: Duration) {
        let labels = (policy.to_owned(), binding.to_owned(), error);
        if let Some(taken) = self
            .mutated_in
            .get(labels.clone(), || Durations::new(SECONDS))
        {
            taken.add(elapsed);
        }
        self.mutated.count(labels);
    }

    pub fn text(&self, text: &mut Text) {
        let name = "apiserver_validating_admission_policy_check_total";
        let help = "Validation admission policy check total, labeled by policy and further \
                    identified by binding and enforcement action taken.";
        text.family(name, "counter", help);
        for (of, count) in self.judged.all() {
            text.sample(name, &named(&of), count.load(Ordering::Relaxed));
        }
        let name = "apiserver_validating_admission_policy_check_duration_seconds";
        let help = "Validation admission latency for individual validation expressions in seconds, \
                    labeled by policy and further including binding and enforcement action taken.";
        text.family(name, "histogram", help);
        for (of, durations) in self.judged_in.all() {
            durations.text(text, name, &named(&of));
        }
        let name = "apiserver_mutating_admission_policy_check_total";
        let help = "Mutation admission policy check total, labeled by policy and further \
                    identified by binding.";
        text.family(name, "counter", help);
        for (of, count) in self.mutated.all() {
            text.sample(name, &changed(&of), count.load(Ordering::Relaxed));
        }
        let name = "apiserver_mutating_admission_policy_check_duration_seconds";
        let help = "Mutation admission latency for individual mutation expressions in seconds, \
                    labeled by policy and binding.";
        text.family(name, "histogram", help);
        for (of, durations) in self.mutated_in.all() {
            durations.text(text, name, &changed(&of));
        }
    }
}

fn changed((policy, binding, error): &Changed) -> [(&'static str, &str); 3] {
    [
        ("error_type", error.as_str()),
        ("policy", policy),
        ("policy_binding", binding),
    ]
}

fn named((policy, binding, error, action): &Labels) -> [(&'static str, &str); 4] {
    [
        ("enforcement_action", action),
        ("error_type", error.as_str()),
        ("policy", policy),
        ("policy_binding", binding),
    ]
}
