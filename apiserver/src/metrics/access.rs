//! What is counted of who asks and what they may do, under upstream's names.

use super::text::Text;
use crate::authenticate::User;
use std::sync::atomic::{AtomicU64, Ordering};

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
    allowed: AtomicU64,
    denied: AtomicU64,
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

    pub fn decided(&self, is_allowed: bool) {
        let count = if is_allowed {
            &self.allowed
        } else {
            &self.denied
        };
        count.fetch_add(1, Ordering::Relaxed);
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
        for (result, count) in [("allowed", &self.allowed), ("no-opinion", &self.denied)] {
            text.sample(decisions, &[("result", result)], load(count));
        }
    }
}
