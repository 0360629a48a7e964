//! Kubernetes quantities (`100m`, `1Gi`, `1e3`): exact decimal numbers with a suffix.
//!
//! As upstream: precise down to nano, anything finer is rounded up (away from zero); the value is
//! capped at 2^63-1 in magnitude. The canonical form keeps the family of suffixes it was written
//! in and uses the largest suffix that leaves a whole number.

use std::cmp::Ordering;
use std::fmt;

const NANO: i128 = 1_000_000_000;
/// Largest magnitude of a quantity, in units.
const UNITS_MAX: i128 = i64::MAX as i128;
/// No quantity that means anything is longer; bounds the work on hostile input.
const TEXT_BYTES_MAX: usize = 256;

/// The family of suffixes a quantity is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `m`, none, `k`, `M`, `G` ...
    DecimalSi,
    /// `Ki`, `Mi`, `Gi` ...
    BinarySi,
    /// `e3`, `E6`.
    DecimalExponent,
}

/// A quantity, in nano units. Equality and order are by value; the format is for printing.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nano: i128,
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    #[error(
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

impl Quantity {
    pub const ZERO: Self = Self {
        nano: 0,
        format: Format::DecimalSi,
    };

    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() || text.len() > TEXT_BYTES_MAX {
            return Err(QuantityError::Format);
        }
        let (negative, rest) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || whole.len() + fraction.len() == 0 {
            return Err(QuantityError::Format);
        }
        let (format, scale) = suffix_scale(suffix)?;
        let nano = scaled_nano(whole, fraction, scale);
        let nano = if negative { -nano } else { nano };
        Ok(Self { nano, format })
    }

    /// A JSON string or number, as upstream decodes a quantity.
    pub fn from_value(value: &serde_json::Value) -> Result<Self, QuantityError> {
        match value {
            serde_json::Value::String(text) => Self::parse(text),
            serde_json::Value::Number(number) => Self::parse(&number.to_string()),
            serde_json::Value::Null => Ok(Self::ZERO),
            _ => Err(QuantityError::Format),
        }
    }

    pub fn from_units(units: i64, format: Format) -> Self {
        Self {
            nano: i128::from(units) * NANO,
            format,
        }
    }

    pub fn from_milli(milli: i64, format: Format) -> Self {
        Self {
            nano: i128::from(milli) * 1_000_000,
            format,
        }
    }

    pub fn from_nano(nano: i64, format: Format) -> Self {
        Self {
            nano: nano.into(),
            format,
        }
    }

    /// In whole units, rounded up.
    pub fn value(&self) -> i64 {
        self.scaled(NANO)
    }

    /// In thousandths, rounded up.
    pub fn milli_value(&self) -> i64 {
        self.scaled(NANO / 1_000)
    }

    fn scaled(&self, nano_per: i128) -> i64 {
        let value = div_away(self.nano, nano_per);
        i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
    }

    pub fn is_zero(&self) -> bool {
        self.nano == 0
    }

    pub fn is_negative(&self) -> bool {
        self.nano < 0
    }

    /// True when it has no fraction.
    pub fn is_whole(&self) -> bool {
        self.nano % NANO == 0
    }

    /// True when it has nothing finer than thousandths.
    pub fn is_whole_milli(&self) -> bool {
        self.nano % (NANO / 1_000) == 0
    }

    pub fn format(&self) -> Format {
        self.format
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let format = if self.nano == 0 {
            other.format
        } else {
            self.format
        };
        Self {
            nano: cap(self.nano + other.nano),
            format,
        }
    }

    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        let format = if self.nano == 0 {
            other.format
        } else {
            self.format
        };
        Self {
            nano: cap(self.nano - other.nano),
            format,
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

/// How a suffix multiplies: by a power of ten, or of 1024.
#[derive(Clone, Copy)]
enum Scale {
    Ten(i32),
    Kibi(u32),
}

fn suffix_scale(suffix: &str) -> Result<(Format, Scale), QuantityError> {
    let si = |power| Ok((Format::DecimalSi, Scale::Ten(power)));
    let binary = |power| Ok((Format::BinarySi, Scale::Kibi(power)));
    match suffix {
        "n" => si(-9),
        "u" => si(-6),
        "m" => si(-3),
        "" => si(0),
        "k" => si(3),
        "M" => si(6),
        "G" => si(9),
        "T" => si(12),
        "P" => si(15),
        "E" => si(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let exponent = suffix
                .strip_prefix(['e', 'E'])
                .ok_or_else(|| unknown_suffix(suffix))?;
            let power: i32 = exponent.parse().map_err(|_| unknown_suffix(suffix))?;
            Ok((Format::DecimalExponent, Scale::Ten(power)))
        }
    }
}

/// Upstream tells a suffix of the right letters, but unknown, from what is no suffix at all.
fn unknown_suffix(suffix: &str) -> QuantityError {
    let letters = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let digits = letters.strip_prefix(['-', '+']).unwrap_or(letters);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        QuantityError::Suffix
    } else {
        QuantityError::Format
    }
}

/// `whole.fraction` scaled, in nano units, rounded up and capped.
fn scaled_nano(whole: &str, fraction: &str, scale: Scale) -> i128 {
    let digits = whole.bytes().chain(fraction.bytes());
    let digits: Vec<u8> = digits
        .map(|byte| byte - b'0')
        .skip_while(|d| *d == 0)
        .collect();
    if digits.is_empty() {
        return 0;
    }
    let (power, factor) = match scale {
        Scale::Ten(power) => (i64::from(power), 1),
        Scale::Kibi(power) => (0, 1024_i128.pow(power)),
    };
    // The number is 0.digits times ten to `point`; nano adds nine more places.
    let places = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let exponent = power - places + 9;
    if length + exponent > 30 {
        return UNITS_MAX * NANO;
    }
    if length + exponent < -7 && factor == 1 || length + exponent < -30 {
        return 1; // Finer than nano: rounded up, never to zero.
    }
    // Digits beyond what an i128 holds after scaling only matter for rounding up.
    let digits_limit = if factor == 1 {
        10_i128.pow(29)
    } else {
        10_i128.pow(18)
    };
    let mut value: i128 = 0;
    let mut dropped = 0_i64;
    let mut inexact = false;
    for digit in &digits {
        if value < digits_limit {
            value = value * 10 + i128::from(*digit);
        } else {
            dropped += 1;
            inexact |= *digit != 0;
        }
    }
    let exponent = exponent + dropped;
    let scaled = value * factor;
    let nano = if exponent >= 0 {
        let power = u32::try_from(exponent).unwrap_or(u32::MAX);
        10_i128
            .checked_pow(power)
            .and_then(|ten| scaled.checked_mul(ten))
            .unwrap_or(i128::MAX)
    } else {
        let power = u32::try_from(-exponent).unwrap_or(u32::MAX);
        match 10_i128.checked_pow(power) {
            Some(ten) => {
                inexact |= scaled % ten != 0;
                scaled / ten
            }
            None => {
                inexact = true;
                0
            }
        }
    };
    cap(nano.saturating_add(i128::from(inexact)))
}

fn cap(nano: i128) -> i128 {
    nano.clamp(-UNITS_MAX * NANO, UNITS_MAX * NANO)
}

/// Division that rounds away from zero.
fn div_away(value: i128, by: i128) -> i128 {
    let quotient = value / by;
    if value % by == 0 {
        quotient
    } else {
        quotient + value.signum()
    }
}

impl fmt::Display for Quantity {
    /// The canonical form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nano == 0 {
            return f.write_str("0");
        }
        match self.format {
            // Fractions and small numbers have no binary suffix: upstream writes them decimal.
            Format::BinarySi if self.nano.abs() >= 1024 * NANO && self.is_whole() => {
                let mut units = self.nano / NANO;
                let mut index = 0;
                while units % 1024 == 0 && index < 6 {
                    units /= 1024;
                    index += 1;
                }
                write!(
                    f,
                    "{units}{}",
                    ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][index]
                )
            }
            format => {
                let mut number = self.nano;
                let mut power: i32 = -9;
                while number % 1_000 == 0 && power < 18 {
                    number /= 1_000;
                    power += 3;
                }
                if format == Format::DecimalExponent {
                    return match power {
                        0 => write!(f, "{number}"),
                        power => write!(f, "{number}e{power}"),
                    };
                }
                let suffix = match power {
                    -9 => "n",
                    -6 => "u",
                    -3 => "m",
                    0 => "",
                    3 => "k",
                    6 => "M",
                    9 => "G",
                    12 => "T",
                    15 => "P",
                    _ => "E",
                };
                write!(f, "{number}{suffix}")
            }
        }
    }
}

#[cfg(test)]
mod tests;
