//! Figures of one server beside those of another, round by round: medians, their spread, and the
//! ratio of each pair. Pure.

use crate::stats::Report;
use serde_json::{Value, json};

/// The unit of what is only a number: calls that failed, and what else was counted. What nobody
/// counted in a round was none.
const COUNT: &str = "";

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
    let mut figures = vec![
        Figure::new(what("rate"), "/s", report.rate()),
        Figure::new(what("p50"), "ms", ms(report.p50)),
        Figure::new(what("p99"), "ms", ms(report.p99)),
        Figure::new(what("failed"), COUNT, report.failed as f64),
    ];
    let notes = report.notes.iter();
    figures.extend(notes.map(|(of, count)| Figure::new(what(of), COUNT, *count as f64)));
    figures
}

impl Pairs {
    pub fn new(sides: usize) -> Self {
        Self {
            sides,
            rows: Vec::new(),
        }
    }

    /// Rounds of one side come in their order.
    pub fn add(&mut self, side: usize, round: usize, figure: Figure) {
        let known = self.rows.iter().position(|row| row.what == figure.what);
        let at = known.unwrap_or_else(|| {
            self.rows.push(Row {
                what: figure.what,
                unit: figure.unit,
                values: vec![Vec::new(); self.sides],
            });
            self.rows.len() - 1
        });
        let row = &mut self.rows[at];
        row.fill(side, round);
        row.values[side].push(figure.value);
    }

    /// Every side has had so many rounds.
    pub fn end(&mut self, rounds: usize) {
        for row in &mut self.rows {
            (0..self.sides).for_each(|side| row.fill(side, rounds));
        }
    }

    /// Those with something to say to people.
    fn shown(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| !row.is_as_hoped())
    }

    pub fn table(&self, names: &[String]) -> String {
        let shown = || self.shown();
        let width = shown().map(|row| row.what.len()).max();
        let width = width.unwrap_or_default().max("what".len());
        let units = shown().map(|row| row.unit.len()).max();
        let units = units.unwrap_or_default().max("unit".len());
        let mut table = format!("{:<width$}  {:<units$}", "what", "unit");
        for name in names {
            table.push_str(&format!("{:>32}", shortened(name)));
        }
        if self.sides == 2 {
            table.push_str("  first / second, of each round");
        }
        for row in shown() {
            table.push_str(&format!("\n{:<width$}  {:<units$}", row.what, row.unit));
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

    /// The same for a page, with the median of the ratios.
    pub fn markdown(&self, names: &[String]) -> String {
        let mut page = format!("| what | {} |", names.join(" | "));
        let mut rule = format!("| --- |{}", " --- |".repeat(names.len()));
        if self.sides == 2 {
            page.push_str(" first / second: median (each round) |");
            rule.push_str(" --- |");
        }
        for line in [rule].into_iter().chain(self.shown().map(Row::markdown)) {
            page.push('\n');
            page.push_str(&line);
        }
        page
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
    /// What was counted in rounds before this one, and what was not.
    fn fill(&mut self, side: usize, rounds: usize) {
        let values = &mut self.values[side];
        if self.unit == COUNT && values.len() < rounds {
            values.resize(rounds, 0.0);
        }
    }

    fn markdown(&self) -> String {
        let unit = match self.unit {
            COUNT => String::new(),
            unit => format!(" ({unit})"),
        };
        let mut line = format!("| {}{unit} |", self.what);
        for values in &self.values {
            line.push_str(&format!(" {} |", spread(values)));
        }
        if self.values.len() == 2 {
            let ratios = self.ratios();
            let each: Vec<_> = ratios.iter().copied().map(short).collect();
            let cell = match median(&ratios) {
                Some(median) if ratios.len() > 1 => {
                    format!("{} ({})", short(median), each.join(", "))
                }
                Some(one) => short(one),
                None => String::new(),
            };
            line.push_str(&format!(" {cell} |"));
        }
        line
    }

    /// Nothing failed, which needs no line for people.
    fn is_as_hoped(&self) -> bool {
        self.unit == COUNT && self.values.iter().flatten().all(|value| *value == 0.0)
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
