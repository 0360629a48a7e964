//! What a request of the kubelet's API asks for: a verb on a subresource of the node. Pure.

use http::Method;

/// What allows a path: each of the subresources does by itself. All else is `proxy`.
const RIGHTS: &[(&str, &[&str])] = &[
    ("/pods", &["pods", "proxy"]),
    ("/runningpods", &["pods", "proxy"]),
    ("/healthz", &["healthz", "proxy"]),
    ("/configz", &["configz", "proxy"]),
    ("/stats", &["stats"]),
    ("/metrics", &["metrics"]),
    ("/logs", &["log"]),
    ("/checkpoint", &["checkpoint"]),
    ("/statusz", &["statusz"]),
    ("/flagz", &["configz"]),
];
/// Where something is made to run or is connected to.
const COMMANDS: &[&str] = &["/exec", "/attach", "/run", "/portForward"];

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Right {
    /// Empty for a method that no role can name.
    pub verb: &'static str,
    pub subresources: &'static [&'static str],
}

impl Right {
    /// Upstream's, but for commands: a WebSocket to one begins with a GET, and whoever may only
    /// read must not run any.
    pub fn of(method: &Method, path: &str) -> Self {
        let found = RIGHTS.iter().find(|(top, _)| is_within(path, top));
        let is_command = COMMANDS.iter().any(|top| is_within(path, top));
        Self {
            verb: if is_command { "create" } else { verb(method) },
            subresources: found.map_or(&["proxy"], |(_, subresources)| subresources),
        }
    }
}

fn is_within(path: &str, top: &str) -> bool {
    let rest = path.strip_prefix(top);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
