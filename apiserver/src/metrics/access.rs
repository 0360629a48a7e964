//! What is counted of who asks and what they may do, under upstream's names.

use super::histogram::Durations;
use super::text::Text;
use crate::authenticate::User;
use std::sync::atomic::{AtomicU64, Ordering};
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
    }
}
