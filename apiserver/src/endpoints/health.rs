//! `/healthz`, `/livez` and `/readyz`, with named checks, as upstream words them.

use super::text;
use crate::metrics::text::Format;
use crate::query::Query;
use crate::tunnel::Body;
use coracle_api::exposition::checks::Results;
use http::header::X_CONTENT_TYPE_OPTIONS;
use http::{Response, StatusCode};
use jiff::Timestamp;
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

/// One named check, and why it does not pass if it does not.
type Check = (&'static str, Option<String>);

const NOT_FINISHED: &str = "not finished";

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
        let checks = |name| self.checks(name, None);
        let all = endpoints.into_iter().filter_map(checks);
        let paths = all.flat_map(|(endpoint, checks)| {
            let names = checks.into_iter().map(|(name, _)| name);
            names.map(move |name| format!("/{endpoint}/{name}"))
        });
        paths.collect()
    }

    /// What the checks said so far.
    pub fn results(&self, format: Format, started: Timestamp) -> String {
        self.results.text(format, started)
    }

    /// That this can be asked at all is what most of them say: nothing is served before the roles
    /// are in place. A disk that takes no writes is no reason to end the process, which goes on by
    /// itself when the disk does: `/livez` does not tell of it.
    fn checks(
        &self,
        endpoint: &str,
        trouble: Option<String>,
    ) -> Option<(&'static str, Vec<Check>)> {
        let unless = |passes: bool| (!passes).then(|| NOT_FINISHED.to_owned());
        let is_ready = self.is_ready.load(Ordering::Acquire);
        let goes_on = !self.is_shutting_down.load(Ordering::Acquire);
        let (endpoint, store, shutdown) = match endpoint {
            "healthz" => ("healthz", trouble, None),
            "livez" => ("livez", None, None),
            "readyz" => ("readyz", trouble, Some(("shutdown", unless(goes_on)))),
            _ => return None,
        };
        let checks = [
            ("ping", None),
            ("log", None),
            // Upstream's name for the store, whatever it is: monitors ask for it by this name.
            ("etcd", store),
            ("poststarthook/rbac/bootstrap-roles", unless(is_ready)),
            (
                "poststarthook/scheduling/bootstrap-system-priority-classes",
                unless(is_ready),
            ),
            (
                "poststarthook/priority-and-fairness-config-producer",
                unless(is_ready),
            ),
        ];
        Some((endpoint, checks.into_iter().chain(shutdown).collect()))
    }

    /// `trouble` is why nothing can be written at the moment.
    pub fn answer(
        &self,
        path: &str,
        query: &Query,
        trouble: Option<String>,
    ) -> Option<Response<Body>> {
        let path = path.strip_prefix('/')?;
        let (endpoint, one) = match path.split_once('/') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (path, ""),
        };
        let (endpoint, checks) = self.checks(endpoint, trouble)?;
        if !one.is_empty() {
            let (_, failure) = checks.into_iter().find(|(name, _)| *name == one)?;
            return Some(match failure {
                None => {
                    let mut response = text(StatusCode::OK, PLAIN, "ok");
                    response.headers_mut().remove(X_CONTENT_TYPE_OPTIONS);
                    response
                }
                Some(why) => {
                    let why = format!("internal server error: {why}\n");
                    text(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, why)
                }
            });
        }
        let excluded: BTreeSet<&str> = query.all("exclude").collect();
        let asked = checks.iter().filter(|check| !excluded.contains(check.0));
        asked.for_each(|(name, failure)| self.results.add(name, endpoint, failure.is_none()));
        let failed = checks
            .iter()
            .any(|(name, failure)| failure.is_some() && !excluded.contains(name));
        if !failed && query.get("verbose").is_none() {
            return Some(text(StatusCode::OK, PLAIN, "ok"));
        }
        let mut body: String = checks
            .iter()
            .map(|(name, failure)| match (excluded.contains(name), failure) {
                (true, _) => format!("[+]{name} excluded: ok\n"),
                (false, None) => format!("[+]{name} ok\n"),
                (false, Some(_)) => format!("[-]{name} failed: reason withheld\n"),
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
