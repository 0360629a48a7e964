//! What is counted of who asks and what they may do, under upstream's names.

use super::histogram::Durations;
use super::text::Text;
use crate::authenticate::User;
use crate::authenticate::impersonate::Mode;
use crate::authenticate::issuers::Reloads;
use crate::tokens::Remarks;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Upstream names these and no others: the number of series is bounded.
const NAMED: [&str; 5] = [
    "admin",
    "client",
    "kube_proxy",
    "kubelet",
    "system:anonymous",
];
const OTHER: usize = NAMED.len();

#[derive(Debug, Default)]
pub struct Access {
    succeeded: AtomicU64,
    failed: AtomicU64,
    users: [AtomicU64; OTHER + 1],
    allowed: Decided,
    denied: Decided,
    /// By mode, in the order of `Mode::ALL`.
    impersonations: [AtomicU64; Mode::ALL.len()],
    impersonations_denied: AtomicU64,
    stale_tokens: AtomicU64,
    legacy_tokens: AtomicU64,
    legacy_generated: AtomicU64,
    legacy_manual: AtomicU64,
    /// Set when there is a file that is read again.
    reloads: OnceLock<Arc<Reloads>>,
}

/// From a millisecond, each twice the one before, as upstream.
const SECONDS: &[f64] = &[
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096,
    8.192, 16.384,
];

/// Decisions with one outcome.
#[derive(Debug)]
struct Decided(Durations);

impl Default for Decided {
    fn default() -> Self {
        Self(Durations::new(SECONDS))
    }
}

impl Access {
    pub fn recognized(&self, user: &User) {
        self.succeeded.fetch_add(1, Ordering::Relaxed);
        let place = NAMED.iter().position(|name| *name == user.name);
        self.users[place.unwrap_or(OTHER)].fetch_add(1, Ordering::Relaxed);
    }

    pub fn unrecognized(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub fn set_reloads(&self, reloads: Arc<Reloads>) {
        drop(self.reloads.set(reloads));
    }

    /// Counts the token of a service account that calls for something better.
    pub fn shown(&self, remarks: &Remarks) {
        if remarks.is_stale {
            self.stale_tokens.fetch_add(1, Ordering::Relaxed);
        }
        if remarks.used.is_some() {
            self.legacy_tokens.fetch_add(1, Ordering::Relaxed);
            let kind = match remarks.warning {
                Some(_) => &self.legacy_generated,
                None => &self.legacy_manual,
            };
            kind.fetch_add(1, Ordering::Relaxed);
        }
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
        for (name, count) in NAMED.into_iter().chain(["other"]).zip(&self.users) {
            if load(count) > 0 {
                text.sample(users, &[("username", name)], load(count));
            }
        }
        let attempts = "authentication_attempts";
        text.family(attempts, "counter", "Counter of authenticated attempts.");
        for (result, count) in [("failure", &self.failed), ("success", &self.succeeded)] {
            text.sample(attempts, &[("result", result)], load(count));
        }
        let decisions = "authorization_attempts_total";
        let help = "Counter of authorization attempts broken down by result.";
        text.family(decisions, "counter", help);
        let outcomes = [("allowed", &self.allowed), ("no-opinion", &self.denied)];
        for (result, decided) in outcomes {
            text.sample(decisions, &[("result", result)], decided.0.count());
        }
        let took = "authorization_duration_seconds";
        let help = "Authorization duration in seconds broken out by result.";
        text.family(took, "histogram", help);
        for (result, decided) in outcomes {
            decided.0.text(text, took, &[("result", result)]);
        }
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
        let tokens = [
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
        ];
        for (name, help, count) in tokens {
            text.family(name, "counter", help);
            text.sample(name, &[], load(count));
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
