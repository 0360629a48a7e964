//! Checks of a process under upstream's names, and what is answered about them. Pure but for the
//! checks themselves.
//!
//! Everybody may ask whether all is well, so why it is not is told to those alone who may ask for the
//! single check.

use coracle_api::exposition::checks::Results;
use http::StatusCode;
use std::fmt::{Debug, Write};

type Ask = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

pub struct Check {
    pub name: &'static str,
    ask: Ask,
}

impl Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Check {
    pub fn new(
        name: &'static str,
        ask: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            ask: Box::new(ask),
        }
    }

    /// That the process answers at all.
    pub fn ping() -> Self {
        Self::new("ping", || Ok(()))
    }
}

/// The answer to `/healthz` and its like, whose name is `endpoint`; what each check says is counted.
pub fn all(
    endpoint: &'static str,
    checks: &[Check],
    query: &str,
    results: &Results,
) -> (StatusCode, String) {
    let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    let mut left_out: Vec<&str> = Vec::new();
    for (key, value) in &pairs {
        if key == "exclude" && !left_out.contains(&value.as_ref()) {
            left_out.push(value);
        }
    }
    let (mut text, mut has_failed) = (String::new(), false);
    for check in checks {
        let told = if let Some(place) = left_out.iter().position(|name| *name == check.name) {
            left_out.remove(place);
            "excluded: ok"
        } else {
            let said = (check.ask)();
            results.add(check.name, endpoint, said.is_ok());
            match said {
                Ok(()) => "ok",
                Err(why) => {
                    tracing::debug!(check = check.name, why, "not healthy");
                    has_failed = true;
                    "failed: reason withheld"
                }
            }
        };
        let sign = if told.starts_with("failed") { '-' } else { '+' };
        // A write into a string cannot fail.
        let _ = writeln!(text, "[{sign}]{} {told}", check.name);
    }
    if !left_out.is_empty() {
        left_out.sort_unstable();
        let quoted: Vec<String> = left_out.iter().map(|name| format!("{name:?}")).collect();
        let names = quoted.join(",");
        let warning = "warn: some health checks cannot be excluded: no matches for";
        let _ = writeln!(text, "{warning} {names}");
    }
    if has_failed {
        let _ = writeln!(text, "{endpoint} check failed");
        return (StatusCode::INTERNAL_SERVER_ERROR, text);
    }
    if !pairs.iter().any(|(key, _)| key == "verbose") {
        return (StatusCode::OK, "ok".to_owned());
    }
    let _ = writeln!(text, "{endpoint} check passed");
    (StatusCode::OK, text)
}

/// The answer about one check; none where there is no such.
pub fn one(checks: &[Check], name: &str) -> Option<(StatusCode, String)> {
    let check = checks.iter().find(|check| check.name == name)?;
    Some(match (check.ask)() {
        Ok(()) => (StatusCode::OK, "ok".to_owned()),
        Err(why) => {
            let text = format!("internal server error: {why}\n");
            (StatusCode::INTERNAL_SERVER_ERROR, text)
        }
    })
}

#[cfg(test)]
mod tests;
