//! `/healthz`, `/livez` and `/readyz`, with named checks, as upstream words them.

use super::text;
use crate::query::Query;
use crate::tunnel::Body;
use http::{Response, StatusCode};
use std::sync::atomic::{AtomicBool, Ordering};

const PLAIN: &str = "text/plain; charset=utf-8";

/// What the checks look at.
#[derive(Debug, Default)]
pub struct Health {
    is_ready: AtomicBool,
    is_shutting_down: AtomicBool,
}

/// One named check and whether it passes.
type Check = (&'static str, bool);

impl Health {
    pub fn set_ready(&self) {
        self.is_ready.store(true, Ordering::Release);
    }

    pub fn set_shutting_down(&self) {
        self.is_shutting_down.store(true, Ordering::Release);
    }

    /// That this can be asked at all is what most of them say: the store ends the process when it
    /// fails, and nothing is served before the roles are in place.
    fn checks(&self, endpoint: &str) -> Option<Vec<Check>> {
        let is_ready = self.is_ready.load(Ordering::Acquire);
        let mut checks = vec![
            ("ping", true),
            ("store", true),
            ("poststarthook/rbac/bootstrap-roles", is_ready),
        ];
        match endpoint {
            "healthz" | "livez" => {}
            "readyz" => {
                let goes_on = !self.is_shutting_down.load(Ordering::Acquire);
                checks.push(("shutdown", goes_on));
            }
            _ => return None,
        }
        Some(checks)
    }

    pub fn answer(&self, path: &str, query: &Query) -> Option<Response<Body>> {
        let path = path.strip_prefix('/')?;
        let (endpoint, one) = path.split_once('/').unwrap_or((path, ""));
        let checks = self.checks(endpoint)?;
        if !one.is_empty() {
            let (_, passes) = checks.into_iter().find(|(name, _)| *name == one)?;
            return Some(if passes {
                text(StatusCode::OK, PLAIN, "ok")
            } else {
                let why = "internal server error: reason withheld\n";
                text(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, why)
            });
        }
        let excluded = |name: &str| query.all("exclude").any(|one| one == name);
        let failed = checks
            .iter()
            .any(|(name, passes)| !passes && !excluded(name));
        if !failed && query.get("verbose").is_none() {
            return Some(text(StatusCode::OK, PLAIN, "ok"));
        }
        let mut body: String = checks
            .iter()
            .map(|(name, passes)| match (excluded(name), passes) {
                (true, _) => format!("[+]{name} excluded: ok\n"),
                (false, true) => format!("[+]{name} ok\n"),
                (false, false) => format!("[-]{name} failed: reason withheld\n"),
            })
            .collect();
        let (code, end) = if failed {
            (StatusCode::INTERNAL_SERVER_ERROR, "failed")
        } else {
            (StatusCode::OK, "passed")
        };
        body.push_str(&format!("{endpoint} check {end}\n"));
        Some(text(code, PLAIN, body))
    }
}
