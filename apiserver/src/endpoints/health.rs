//! `/healthz`, `/livez` and `/readyz`, with named checks, as upstream words them.

mod results; // What they said.

use super::text;
use crate::metrics::text::Format;
use crate::query::Query;
use crate::tunnel::Body;
use http::header::X_CONTENT_TYPE_OPTIONS;
use http::{Response, StatusCode};
use results::Results;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

const PLAIN: &str = "text/plain; charset=utf-8";

/// What the checks look at.
#[derive(Debug, Default)]
pub struct Health {
    is_ready: AtomicBool,
    is_shutting_down: AtomicBool,
    results: Results,
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

    /// The paths of the checks.
    pub fn paths(&self) -> Vec<String> {
        let endpoints = ["healthz", "livez", "readyz"];
        let all = endpoints.into_iter().filter_map(|name| self.checks(name));
        let paths = all.flat_map(|(endpoint, checks)| {
            let names = checks.into_iter().map(|(name, _)| name);
            names.map(move |name| format!("/{endpoint}/{name}"))
        });
        paths.collect()
    }

    /// What the checks said so far.
    pub fn results(&self, format: Format, started_seconds: f64) -> String {
        self.results.text(format, started_seconds)
    }

    /// That this can be asked at all is what most of them say: the store ends the process when it
    /// fails, and nothing is served before the roles are in place.
    fn checks(&self, endpoint: &str) -> Option<(&'static str, Vec<Check>)> {
        let is_ready = self.is_ready.load(Ordering::Acquire);
        let mut checks = vec![
            ("ping", true),
            ("log", true),
            // Upstream's name for the store, whatever it is: monitors ask for it by this name.
            ("etcd", true),
            ("poststarthook/rbac/bootstrap-roles", is_ready),
            (
                "poststarthook/scheduling/bootstrap-system-priority-classes",
                is_ready,
            ),
            (
                "poststarthook/priority-and-fairness-config-producer",
                is_ready,
            ),
        ];
        let endpoint = match endpoint {
            "healthz" => "healthz",
            "livez" => "livez",
            "readyz" => {
                let goes_on = !self.is_shutting_down.load(Ordering::Acquire);
                checks.push(("shutdown", goes_on));
                "readyz"
            }
            _ => return None,
        };
        Some((endpoint, checks))
    }

    pub fn answer(&self, path: &str, query: &Query) -> Option<Response<Body>> {
        let path = path.strip_prefix('/')?;
        let (endpoint, one) = match path.split_once('/') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (path, ""),
        };
        let (endpoint, checks) = self.checks(endpoint)?;
        if !one.is_empty() {
            let (_, passes) = checks.into_iter().find(|(name, _)| *name == one)?;
            return Some(if passes {
                let mut response = text(StatusCode::OK, PLAIN, "ok");
                response.headers_mut().remove(X_CONTENT_TYPE_OPTIONS);
                response
            } else {
                let why = "internal server error: not finished\n";
                text(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, why)
            });
        }
        let excluded: BTreeSet<&str> = query.all("exclude").collect();
        let asked = checks.iter().filter(|check| !excluded.contains(check.0));
        asked.for_each(|(name, passes)| self.results.add(name, endpoint, *passes));
        let failed = checks
            .iter()
            .any(|(name, passes)| !passes && !excluded.contains(name));
        if !failed && query.get("verbose").is_none() {
            return Some(text(StatusCode::OK, PLAIN, "ok"));
        }
        let mut body: String = checks
            .iter()
            .map(|(name, passes)| match (excluded.contains(name), passes) {
                (true, _) => format!("[+]{name} excluded: ok\n"),
                (false, true) => format!("[+]{name} ok\n"),
                (false, false) => format!("[-]{name} failed: reason withheld\n"),
            })
            .collect();
        let is_unknown = |name: &&&str| !checks.iter().any(|check| check.0 == **name);
        let unknown: Vec<String> = excluded
            .iter()
            .filter(is_unknown)
            .map(|name| format!("{name:?}"))
            .collect();
        if !unknown.is_empty() {
            body.push_str("warn: some health checks cannot be excluded: no matches for ");
            body.push_str(&unknown.join(","));
            body.push('\n');
        }
        let (code, end) = if failed {
            (StatusCode::INTERNAL_SERVER_ERROR, "failed")
        } else {
            (StatusCode::OK, "passed")
        };
        body.push_str(&format!("{endpoint} check {end}\n"));
        Some(text(code, PLAIN, body))
    }
}

#[cfg(test)]
mod tests;
