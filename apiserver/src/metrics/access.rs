//! What is counted of who asks and what they may do, under upstream's names.

use super::text::Text;
use crate::authenticate::User;
use crate::authenticate::impersonate::Mode;
use crate::authenticate::issuers::Reloads;
use crate::tokens::{Count, Remarks};
use coracle_api::exposition::histogram::Durations;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Upstream names these and no others: the number of series is bounded.
const NAMED: [&str; 5] = [
    "admin",
    "client",
    "kube_proxy",
    "kubelet",
    "system:serviceaccount:kube-system:default",
];
/// Places after those of the names, for what looks like an address of mail and for the rest.
const EMAIL: usize = NAMED.len();
const OTHER: usize = EMAIL + 1;

#[derive(Debug, Default)]
pub struct Access {
    succeeded: Outcome,
    /// Nothing was shown where something must be.
    failed: Outcome,
    /// Something was shown and is not good.
    refused: Outcome,
    users: [AtomicU64; OTHER + 1],
    allowed: Outcome,
    denied: Outcome,
    /// By mode, in the order of `Mode::ALL`.
    impersonations: [AtomicU64; Mode::ALL.len()],
    impersonations_denied: AtomicU64,
    fresh_tokens: AtomicU64,
    stale_tokens: AtomicU64,
    legacy_tokens: AtomicU64,
    legacy_generated: AtomicU64,
    legacy_manual: AtomicU64,
    legacy_invalidated: AtomicU64,
    /// Set when there is a file that is read again.
    reloads: OnceLock<Arc<Reloads>>,
}

/// From a millisecond, each twice the one before, as upstream.
const SECONDS: &[f64] = &[
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096,
    8.192, 16.384,
];

/// How often one outcome came about, and how long that took.
#[derive(Debug)]
struct Outcome(Durations);

impl Default for Outcome {
    fn default() -> Self {
        Self(Durations::new(SECONDS))
    }
}

impl Access {
    pub fn recognized(&self, user: &User, elapsed: Duration) {
        self.succeeded.0.add(elapsed);
        let place = NAMED.iter().position(|name| *name == user.name);
        let rest = if user.name.contains('@') {
            EMAIL
        } else {
            OTHER
        };
        self.users[place.unwrap_or(rest)].fetch_add(1, Ordering::Relaxed);
    }

    /// Nobody was found behind a request, whether it showed something or not.
    pub fn unrecognized(&self, has_shown: bool, elapsed: Duration) {
        let outcome = if has_shown {
            &self.refused
        } else {
            &self.failed
        };
        outcome.0.add(elapsed);
    }

    pub fn set_reloads(&self, reloads: Arc<Reloads>) {
        drop(self.reloads.set(reloads));
    }

    /// Counts the token of a service account.
    pub fn shown(&self, remarks: &Remarks) {
        if remarks.is_legacy {
            self.legacy_tokens.fetch_add(1, Ordering::Relaxed);
        }
        let count = match remarks.count {
            None => return,
            Some(Count::Fresh) => &self.fresh_tokens,
            Some(Count::Stale) => &self.stale_tokens,
            Some(Count::Generated) => &self.legacy_generated,
            Some(Count::Manual) => &self.legacy_manual,
            Some(Count::Invalidated) => &self.legacy_invalidated,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// `None` for a refusal.
    pub fn impersonated(&self, mode: Option<Mode>) {
        let place = mode.and_then(|mode| Mode::ALL.iter().position(|one| *one == mode));
        let count = place.map_or(&self.impersonations_denied, |at| &self.impersonations[at]);
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// A request was let through or not, and how long that took to find out.
    pub fn decided(&self, is_allowed: bool, elapsed: Duration) {
        let outcome = if is_allowed {
            &self.allowed
        } else {
            &self.denied
        };
        outcome.0.add(elapsed);
    }

    pub fn text(&self, text: &mut Text) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let users = "authenticated_user_requests";
        let help = "Counter of authenticated requests broken out by username.";
        text.family(users, "counter", help);
        let names = NAMED.into_iter().chain(["email_id", "other"]);
        for (name, count) in names.zip(&self.users) {
            if load(count) > 0 {
                text.sample(users, &[("username", name)], load(count));
            }
        }
        let attempts = Family {
            count: "authentication_attempts",
            count_help: "Counter of authenticated attempts.",
            took: "authentication_duration_seconds",
            took_help: "Authentication duration in seconds broken out by result.",
        };
        let outcomes = [
            ("error", &self.refused),
            ("failure", &self.failed),
            ("success", &self.succeeded),
        ];
        attempts.text(text, &outcomes);
        let decisions = Family {
            count: "authorization_attempts_total",
            count_help: "Counter of authorization attempts broken down by result.",
            took: "authorization_duration_seconds",
            took_help: "Authorization duration in seconds broken out by result.",
        };
        let outcomes = [("allowed", &self.allowed), ("no-opinion", &self.denied)];
        decisions.text(text, &outcomes);
        self.impersonations_text(text);
        if let Some(reloads) = self.reloads.get() {
            let name = "apiserver_authentication_config_controller_automatic_reloads_total";
            let help = "Total number of automatic reloads of authentication configuration split \
                        by status.";
            text.family(name, "counter", help);
            for (status, count) in [("failure", &reloads.failed), ("success", &reloads.done)] {
                text.sample(name, &[("status", status)], load(count));
            }
        }
        self.tokens_text(text);
    }

    fn tokens_text(&self, text: &mut Text) {
        let tokens = [
            (
                "serviceaccount_valid_tokens_total",
                "Cumulative valid projected service account tokens used",
                &self.fresh_tokens,
            ),
            (
                "serviceaccount_stale_tokens_total",
                "Cumulative stale projected service account tokens used",
                &self.stale_tokens,
            ),
            (
                "serviceaccount_legacy_tokens_total",
                "Cumulative legacy service account tokens used",
                &self.legacy_tokens,
            ),
            (
                "serviceaccount_legacy_auto_token_uses_total",
                "Cumulative auto-generated legacy tokens used",
                &self.legacy_generated,
            ),
            (
                "serviceaccount_legacy_manual_token_uses_total",
                "Cumulative manually created legacy tokens used",
                &self.legacy_manual,
            ),
            (
                "serviceaccount_invalid_legacy_auto_token_uses_total",
                "Cumulative invalid auto-generated legacy tokens used",
                &self.legacy_invalidated,
            ),
        ];
        for (name, help, count) in tokens {
            text.family(name, "counter", help);
            text.sample(name, &[], count.load(Ordering::Relaxed));
        }
    }

    fn impersonations_text(&self, text: &mut Text) {
        let name = "apiserver_impersonation_attempts_total";
        let help = "Total number of impersonation attempts split by mode and decision.";
        text.family(name, "counter", help);
        let denied = ("", "denied", &self.impersonations_denied);
        let modes = Mode::ALL.iter().zip(&self.impersonations);
        let allowed = modes.map(|(mode, count)| (mode.name(), "allowed", count));
        for (mode, decision, count) in allowed.chain([denied]) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                text.sample(name, &[("decision", decision), ("mode", mode)], count);
            }
        }
    }
}

/// A counter by result, and the histogram beside it.
struct Family {
    count: &'static str,
    count_help: &'static str,
    took: &'static str,
    took_help: &'static str,
}

impl Family {
    fn text(&self, text: &mut Text, outcomes: &[(&str, &Outcome)]) {
        text.family(self.count, "counter", self.count_help);
        for (result, outcome) in outcomes {
            text.sample(self.count, &[("result", result)], outcome.0.count());
        }
        text.family(self.took, "histogram", self.took_help);
        for (result, outcome) in outcomes {
            outcome.0.text(text, self.took, &[("result", result)]);
        }
    }
}
