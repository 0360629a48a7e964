//! Prometheus' text format, version 0.0.4.

use std::fmt::{Display, Write};

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Debug, Default)]
pub struct Text(String);

impl Text {
    pub fn into_string(self) -> String {
        self.0
    }

    /// The head of a family. A write into a string cannot fail.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (place, (label, text)) in labels.iter().enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{before}{label}=\"{}\"", escaped(text));
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
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
            labels_with(self, &bound.to_string(), within);
        }
        labels_with(self, "+Inf", count);
        self.sample(&format!("{name}_sum"), labels, sum);
        self.sample(&format!("{name}_count"), labels, count);
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
