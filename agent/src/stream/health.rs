//! `/healthz` and each of its checks, in the words of upstream's servers.

use super::answer::{Body, full, refuse};
use super::serve::Server;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use std::time::Duration;

const NOSNIFF: HeaderName = HeaderName::from_static("x-content-type-options");
/// A runtime that says nothing for this long holds up all pods.
const RUNTIME_MAX: Duration = Duration::from_secs(5);

/// In the order in which they are told; all but the last hold when anything is answered at all.
const CHECKS: [&str; 3] = ["ping", "log", "syncloop"];

/// `check` is empty for all of them.
pub async fn answer(server: &Server, check: &str, is_verbose: bool) -> Response<Body> {
    if !check.is_empty() && !CHECKS.contains(&check) {
        return refuse(StatusCode::NOT_FOUND, "404 page not found\n");
    }
    let runtime = server.stats.context.runtime.list_sandboxes();
    let runs = matches!(tokio::time::timeout(RUNTIME_MAX, runtime).await, Ok(Ok(_)));
    let failed = (!runs).then_some("syncloop");
    typed(respond(check, failed, is_verbose))
}

fn respond(check: &str, failed: Option<&str>, is_verbose: bool) -> Response<Body> {
    if !check.is_empty() {
        return match failed == Some(check) {
            true => refuse(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal server error: the container runtime does not answer\n",
            ),
            false => Response::new(full("ok")),
        };
    }
    let mut told: String = CHECKS
        .iter()
        .map(|one| match failed == Some(*one) {
            true => format!("[-]{one} failed: reason withheld\n"),
            false => format!("[+]{one} ok\n"),
        })
        .collect();
    if failed.is_some() {
        told.push_str("healthz check failed\n");
        return refuse(StatusCode::INTERNAL_SERVER_ERROR, told);
    }
    if !is_verbose {
        return Response::new(full("ok"));
    }
    told.push_str("healthz check passed\n");
    Response::new(full(told))
}

fn typed(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(http::header::CONTENT_TYPE, kind);
    headers.insert(NOSNIFF, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests;
