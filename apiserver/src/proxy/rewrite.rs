//! Where links and redirects of a target lead, seen from the client. Pure.

use super::path;

/// The place of one proxied request.
#[derive(Clone, Debug)]
pub struct Rewriter {
    /// The path of the API up to and with `proxy`.
    pub prefix: String,
    /// The target's own host and port.
    pub target: String,
    /// The host that the client spoke to.
    pub asked: String,
}

impl Rewriter {
    /// A link to a path of the target leads through the proxy; other hosts and relative links stay.
    pub fn turn(&self, link: &str) -> String {
        let (before, rest) = split(link);
        let host = before.rsplit("//").next().unwrap_or("");
        let is_elsewhere = !host.is_empty() && host != self.target && host != self.asked;
        if is_elsewhere || !rest.starts_with('/') || link.chars().any(char::is_control) {
            return link.to_owned();
        }
        // The client's own host is named by nobody but the client: it may stay.
        let before = if host == self.asked { before } else { "" };
        if rest.starts_with(&self.prefix) {
            return format!("{before}{rest}");
        }
        let end = rest.find(['?', '#']).unwrap_or(rest.len());
        let (plain, tail) = rest.split_at(end);
        let whole = path::clean(&format!("{}{plain}", self.prefix));
        format!("{before}{whole}{tail}")
    }
}

/// `scheme://host` or `//host`, and what follows.
fn split(link: &str) -> (&str, &str) {
    let begin = match link.find("//") {
        Some(0) => 2,
        Some(at) if is_scheme(&link[..at]) => at + 2,
        _ => return ("", link),
    };
    let end = link[begin..].find(['/', '?', '#']);
    link.split_at(end.map_or(link.len(), |end| begin + end))
}

fn is_scheme(text: &str) -> bool {
    text.strip_suffix(':').is_some_and(|name| {
        name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}
