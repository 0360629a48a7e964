//! Figures of one server beside those of another, round by round: medians, their spread, and the
//! ratio of each pair. Pure.

use crate::stats::Report;
use serde_json::{Value, json};

/// The unit of calls that failed: a number, and best none.
const FAILED: &str = "";

/// What is measured, with a value a round for each side.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub what: String,
    pub unit: &'static str,
    /// Sides first, rounds within.
    pub values: Vec<Vec<f64>>,
}

/// All of a run, in the order in which it was first measured.
#[derive(Debug)]
pub struct Pairs {
    sides: usize,
    rows: Vec<Row>,
}

/// One value of one side in one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub what: String,
    pub unit: &'static str,
    pub value: f64,
}

impl Figure {
    pub fn new(what: impl Into<String>, unit: &'static str, value: f64) -> Self {
        Self {
            what: what.into(),
            unit,
            value,
        }
    }
}

/// Which side comes first and which second: A B, B A, A B, ... so that what changes on the machine
/// over time meets both alike.
pub fn turn(sides: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<_> = (0..sides).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

/// Of a report what is compared.
pub fn figures(report: &Report) -> Vec<Figure> {
    let what = |of: &str| format!("{}, {of}", report.work);
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    vec![
        Figure::new(what("rate"), "/s", report.rate()),
        Figure::new(what("p50"), "ms", ms(report.p50)),
        Figure::new(what("p99"), "ms", ms(report.p99)),
        // Of every round, also where none failed: rounds are compared by their place.
        Figure::new(what("failed"), FAILED, report.failed as f64),
    ]
}

impl Pairs {
    pub fn new(sides: usize) -> Self {
        Self {
            sides,
            rows: Vec::new(),
        }
    }

    pub fn add(&mut self, side: usize, figure: Figure) {
        let known = self.rows.iter().position(|row| row.what == figure.what);
        let at = known.unwrap_or_else(|| {
            self.rows.push(Row {
                what: figure.what,
                unit: figure.unit,
                values: vec![Vec::new(); self.sides],
            });
            self.rows.len() - 1
        });
        self.rows[at].values[side].push(figure.value);
    }

    pub fn table(&self, names: &[String]) -> String {
        let shown = || self.rows.iter().filter(|row| !row.is_as_hoped());
        let width = shown().map(|row| row.what.len()).max();
        let width = width.unwrap_or_default().max("what".len());
        let mut table = format!("{:<width$}  {:<5}", "what", "unit");
        for name in names {
            table.push_str(&format!("{:>32}", shortened(name)));
        }
        if self.sides == 2 {
            table.push_str("  first / second, of each round");
        }
        for row in shown() {
            table.push_str(&format!("\n{:<width$}  {:<5}", row.what, row.unit));
            for values in &row.values {
                table.push_str(&format!("{:>32}", spread(values)));
            }
            let ratios: Vec<_> = row.ratios().into_iter().map(short).collect();
            if !ratios.is_empty() {
                table.push_str(&format!("  {}", ratios.join(", ")));
            }
        }
        table
    }

    pub fn json(&self, names: &[String]) -> Value {
        let rows = self.rows.iter().map(|row| {
            let sides = row.values.iter().zip(names).map(|(values, name)| {
                json!({
                    "server": name,
                    "values": values,
                    "median": median(values),
                    "min": least(values),
                    "max": greatest(values),
                })
            });
            let ratios = row.ratios();
            json!({
                "what": row.what,
                "unit": row.unit,
                "sides": sides.collect::<Vec<_>>(),
                "ratioMedian": median(&ratios),
                "ratios": ratios,
            })
        });
        json!({"servers": names, "rows": rows.collect::<Vec<_>>()})
    }
}

impl Row {
    /// Nothing failed, which needs no line for people.
    fn is_as_hoped(&self) -> bool {
        self.unit == FAILED && self.values.iter().flatten().all(|value| *value == 0.0)
    }

    /// The first side's value as a share of the second's, of each round that both have measured.
    pub fn ratios(&self) -> Vec<f64> {
        let [first, second] = self.values.as_slice() else {
            return Vec::new();
        };
        let pairs = first.iter().zip(second);
        let pairs = pairs.filter(|(_, second)| **second != 0.0);
        pairs.map(|(first, second)| first / second).collect()
    }
}

/// Of an even number of values the mean of the two in the middle; none of none.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some((sorted[sorted.len() / 2 - 1] + upper) / 2.0)
}

fn least(values: &[f64]) -> Option<f64> {
    values.iter().copied().min_by(f64::total_cmp)
}

fn greatest(values: &[f64]) -> Option<f64> {
    values.iter().copied().max_by(f64::total_cmp)
}

/// The median, and between what the rounds lie if there are several.
fn spread(values: &[f64]) -> String {
    match (median(values), least(values), greatest(values)) {
        (Some(median), Some(least), Some(greatest)) if values.len() > 1 => {
            format!("{} ({}..{})", short(median), short(least), short(greatest))
        }
        (Some(median), ..) => short(median),
        _ => "-".to_owned(),
    }
}

/// Three digits or more, none that say nothing.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// The end of a long name says more than its beginning.
fn shortened(name: &str) -> String {
    const MAX: usize = 30;
    let skip = name.chars().count().saturating_sub(MAX);
    name.chars().skip(skip).collect()
}

#[cfg(test)]
mod tests;
