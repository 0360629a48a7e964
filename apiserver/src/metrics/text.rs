//! Metrics as text: Prometheus' format 0.0.4 and OpenMetrics 1.0.0, as the Accept header asks.

use crate::respond::accept::{self, Clause};
use std::fmt::{Display, Write};

/// How the names of metrics are escaped: ours need none, so any way a client asks for will do.
const ESCAPINGS: [&str; 4] = ["allow-utf-8", "underscores", "dots", "values"];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Prometheus,
    OpenMetrics,
}

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

#[derive(Debug, Default)]
pub struct Text {
    format: Format,
    written: String,
}

impl Text {
    pub fn new(format: Format) -> Self {
        Self {
            format,
            written: String::new(),
        }
    }

    pub fn into_string(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.written.push_str("# EOF\n");
        }
        self.written
    }

    /// The head of a family. A write into a string cannot fail.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        let (name, kind) = match (self.format, kind, name.strip_suffix("_total")) {
            (Format::OpenMetrics, "counter", Some(name)) => (name, kind),
            // A counter must end in `_total` there, and a name is kept.
            (Format::OpenMetrics, "counter", None) => (name, "unknown"),
            _ => (name, kind),
        };
        let _ = writeln!(self.written, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.written.push_str(name);
        for (place, (label, text)) in labels.iter().enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            let _ = write!(self.written, "{before}{label}=\"{}\"", escaped(text));
        }
        if !labels.is_empty() {
            self.written.push('}');
        }
        let _ = writeln!(self.written, " {value}");
    }

    /// `buckets` have an upper bound and how many fell between it and the one before.
    pub fn histogram(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        buckets: impl Iterator<Item = (f64, u64)>,
        sum: f64,
        count: u64,
    ) {
        let bucket = format!("{name}_bucket");
        let mut within = 0;
        let labels_with = |text: &mut Self, bound: &str, value: u64| {
            let mut all = labels.to_vec();
            all.push(("le", bound));
            text.sample(&bucket, &all, value);
        };
        for (bound, own) in buckets {
            within += own;
            let bound = self.bound(bound);
            labels_with(self, &bound, within);
        }
        labels_with(self, "+Inf", count);
        self.sample(&format!("{name}_sum"), labels, sum);
        self.sample(&format!("{name}_count"), labels, count);
    }

    /// OpenMetrics has one spelling for a bound, with a point.
    fn bound(&self, bound: f64) -> String {
        match self.format {
            Format::Prometheus => bound.to_string(),
            Format::OpenMetrics => format!("{bound:?}"),
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
