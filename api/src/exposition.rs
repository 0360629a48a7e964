//! Metrics as text: Prometheus' format 0.0.4 and OpenMetrics 1.0.0. Pure.

pub mod checks; // What checks of health said.
pub mod histogram; // Histograms without a lock.
pub mod process; // What the kernel says about a process.

use std::fmt::{Display, Write};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Prometheus,
    OpenMetrics,
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
        self.head(name, labels);
        let _ = writeln!(self.written, " {value}");
    }

    /// A sample that was taken at a time of its own.
    pub fn sample_at(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        value: impl Display,
        at_ms: i64,
    ) {
        self.head(name, labels);
        let _ = match self.format {
            Format::Prometheus => writeln!(self.written, " {value} {at_ms}"),
            Format::OpenMetrics => writeln!(self.written, " {value} {}", at_ms as f64 / 1000.0),
        };
    }

    fn head(&mut self, name: &str, labels: &[(&str, &str)]) {
        self.written.push_str(name);
        for (place, (label, text)) in labels.iter().enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            let _ = write!(self.written, "{before}{label}=\"{}\"", escaped(text));
        }
        if !labels.is_empty() {
            self.written.push('}');
        }
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

/// A number as Go's clients write it: `1.5e+06`, and no exponent below a million.
pub fn go_number(value: f64) -> String {
    let text = format!("{value:e}");
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return match value {
            _ if value.is_nan() => "NaN".to_owned(),
            _ if value > 0.0 => "+Inf".to_owned(),
            _ => "-Inf".to_owned(),
        };
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests;
