//! Which text format of metrics the Accept header asks for.

use crate::respond::accept::{self, Clause};

pub use coracle_api::exposition::{Format, Text};

/// How the names of metrics are escaped: ours need none, so any way a client asks for will do.
const ESCAPINGS: [&str; 4] = ["allow-utf-8", "underscores", "dots", "values"];

/// The format that an Accept header asks for, and the Content-Type that says so. What cannot be
/// had is answered in Prometheus' own, as every scraper reads that.
pub fn negotiate(accept: &str) -> (Format, String) {
    let mut choices: Vec<Clause<'_>> = accept::clauses(accept).collect();
    // Stable: equals stay in the order in which the client wrote them.
    choices.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    let mut escaping = "underscores";
    for choice in &choices {
        let asked = choice.parameter("escaping");
        if ESCAPINGS.contains(&asked) {
            escaping = asked;
        }
        let version = match (choice.kind, choice.subkind, choice.parameter("version")) {
            ("text", "plain", "" | "0.0.4") => {
                return described(Format::Prometheus, "0.0.4", escaping);
            }
            ("application", "openmetrics-text", "1.0.0") => "1.0.0",
            ("application", "openmetrics-text", "" | "0.0.1") => "0.0.1",
            _ => continue,
        };
        return described(Format::OpenMetrics, version, escaping);
    }
    described(Format::Prometheus, "0.0.4", escaping)
}

fn described(format: Format, version: &str, escaping: &str) -> (Format, String) {
    let media_type = match format {
        Format::Prometheus => "text/plain",
        Format::OpenMetrics => "application/openmetrics-text",
    };
    let text = format!("{media_type}; version={version}; charset=utf-8; escaping={escaping}");
    (format, text)
}
