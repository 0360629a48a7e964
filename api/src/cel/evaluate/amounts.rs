//! Quantities, and versions of software.

use super::Fault;
use super::value::Val;
use crate::quantity::{Format, Quantity};
use std::cmp::Ordering;

/// `1.2.3-rc.1+build`, by the rules of semver.org.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Semver {
    numbers: [u64; 3],
    before: Vec<Part>,
}

/// A part of what a version comes before. Numbers come before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Word(String),
}

impl Ord for Semver {
    fn cmp(&self, other: &Self) -> Ordering {
        let numbers = self.numbers.cmp(&other.numbers);
        // A version comes after all that come before it.
        let is_whole = self.before.is_empty().cmp(&other.before.is_empty());
        numbers
            .then(is_whole)
            .then_with(|| self.before.cmp(&other.before))
    }
}

impl PartialOrd for Semver {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Semver {
    pub fn parse(text: &str) -> Result<Self, String> {
        let (text, build) = text
            .split_once('+')
            .map_or((text, None), |(a, b)| (a, Some(b)));
        let (core, before) = text
            .split_once('-')
            .map_or((text, None), |(a, b)| (a, Some(b)));
        let parts: Vec<&str> = core.split('.').collect();
        let [major, minor, patch] = parts[..] else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let is_part = |part: &str| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        if let Some(bad) = build.and_then(|build| build.split('.').find(|part| !is_part(part))) {
            return Err(format!(
                "Invalid character(s) found in build meta data {bad:?}"
            ));
        }
        let before = before.map(|all| all.split('.').map(part).collect());
        Ok(Self {
            numbers: [
                number(major, "major")?,
                number(minor, "minor")?,
                number(patch, "patch")?,
            ],
            before: before.transpose()?.unwrap_or_default(),
        })
    }

    /// Puts right what is often written: a `v` in front, zeros there, and numbers left out.
    pub fn normalized(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let end = text.find(['-', '+']).unwrap_or(text.len());
        let (core, rest) = text.split_at(end);
        let mut numbers: Vec<&str> = core.split('.').collect();
        for one in &mut numbers {
            let trimmed = one.trim_start_matches('0');
            if !one.is_empty() {
                *one = if trimmed.is_empty() { "0" } else { trimmed };
            }
        }
        while numbers.len() < 3 {
            numbers.push("0");
        }
        Self::parse(&format!("{}{rest}", numbers.join(".")))
    }
}

fn number(text: &str, name: &str) -> Result<u64, String> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "Invalid character(s) found in {name} number {text:?}"
        ));
    }
    if text.len() > 1 && text.starts_with('0') {
        let shown = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
        return Err(format!(
            "{shown} number must not contain leading zeroes {text:?}"
        ));
    }
    text.parse()
        .map_err(|_| format!("{name} number {text:?} is out of range"))
}

fn part(text: &str) -> Result<Part, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            let why = "Numeric PreRelease version must not contain leading zeroes";
            return Err(format!("{why} {text:?}"));
        }
        let number = text.parse();
        return number
            .map(Part::Number)
            .map_err(|_| format!("prerelease {text:?} is out of range"));
    }
    let fits = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !fits {
        return Err(format!("Invalid character(s) found in prerelease {text:?}"));
    }
    Ok(Part::Word(text.to_owned()))
}

/// Of a quantity or a version; `None` where there is no such function.
pub fn call<'a>(name: &str, arguments: &[Val<'a>]) -> Result<Option<Val<'a>>, Fault> {
    Ok(Some(match (name, arguments) {
        ("isLessThan", [a, b]) => Val::Bool(order(a, b)?.is_lt()),
        ("isGreaterThan", [a, b]) => Val::Bool(order(a, b)?.is_gt()),
        ("compareTo", [a, b]) => Val::Int(order(a, b)? as i64),
        ("major", [Val::Semver(version)]) => version_number(version.numbers[0])?,
        ("minor", [Val::Semver(version)]) => version_number(version.numbers[1])?,
        ("patch", [Val::Semver(version)]) => version_number(version.numbers[2])?,
        (name, [Val::Quantity(quantity), rest @ ..]) => {
            return of_quantity(name, *quantity, rest);
        }
        _ => return Ok(None),
    }))
}

fn version_number<'a>(number: u64) -> Result<Val<'a>, Fault> {
    let number = i64::try_from(number);
    number
        .map(Val::Int)
        .map_err(|_| Fault::new("integer overflow"))
}

fn order(a: &Val<'_>, b: &Val<'_>) -> Result<Ordering, Fault> {
    match (a, b) {
        (Val::Quantity(a), Val::Quantity(b)) => Ok(a.cmp(b)),
        (Val::Semver(a), Val::Semver(b)) => Ok(a.cmp(b)),
        _ => Err(Fault::overload()),
    }
}

fn of_quantity<'a>(
    name: &str,
    quantity: Quantity,
    rest: &[Val<'a>],
) -> Result<Option<Val<'a>>, Fault> {
    let is_int = quantity.is_whole()
        && Quantity::from_units(quantity.value(), Format::DecimalSi) == quantity;
    let other = match rest {
        [Val::Quantity(other)] => Some(*other),
        [Val::Int(units)] => Some(Quantity::from_units(*units, Format::DecimalSi)),
        _ => None,
    };
    Ok(Some(match (name, rest, other) {
        ("add", [_], Some(other)) => Val::Quantity(quantity.plus(other)),
        ("sub", [_], Some(other)) => Val::Quantity(quantity.minus(other)),
        ("isInteger", [], _) => Val::Bool(is_int),
        ("asInteger", [], _) if is_int => Val::Int(quantity.value()),
        ("asInteger", [], _) => return Err(Fault::new("cannot convert value to integer")),
        #[expect(clippy::cast_precision_loss, reason = "it is said to be approximate")]
        ("asApproximateFloat", [], _) => Val::Double(if quantity.is_whole() {
            quantity.value() as f64
        } else {
            quantity.milli_value() as f64 / 1000.0
        }),
        ("sign", [], _) => Val::Int(match (quantity.is_zero(), quantity.is_negative()) {
            (true, _) => 0,
            (_, true) => -1,
            _ => 1,
        }),
        _ => return Ok(None),
    }))
}
