//! What a request of the kubelet's API asks for: a verb on a subresource of the node. Pure.

use coracle_api::node_endpoints::{is_within, subresources};
use http::Method;

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
        let is_command = COMMANDS.iter().any(|top| is_within(path, top));
        Self {
            verb: if is_command { "create" } else { verb(method) },
            subresources: subresources(path),
        }
    }
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
