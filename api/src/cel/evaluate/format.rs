//! `'%s has %d'.format(['a', 1])`, in the form of the version of the function that upstream has.

use super::Fault;
use super::machine::Machine;
use super::texts::quoted;
use super::times::duration_text;
use super::value::{List, Val};
use crate::exposition::go_number;
use std::fmt::Write;

const PRECISION_DEFAULT: usize = 6;
/// Digits behind a point that can be asked for.
const PRECISION_MAX: usize = 1000;

pub fn format<'a>(
    machine: &mut Machine<'a>,
    text: &str,
    arguments: List<'_, 'a>,
) -> Result<String, Fault> {
    let mut made = String::new();
    let mut rest = text;
    let mut next = 0;
    while let Some((before, clause)) = rest.split_once('%') {
        made.push_str(before);
        if let Some(after) = clause.strip_prefix('%') {
            made.push('%');
            rest = after;
            continue;
        }
        let value = arguments.get(next);
        let value = value.ok_or_else(|| Fault::new(format!("index {next} out of range")))?;
        next += 1;
        let (precision, after) = precision(clause)?;
        let mut verbs = after.chars();
        let verb = verbs
            .next()
            .ok_or_else(|| Fault::new("unexpected end of string"))?;
        rest = verbs.as_str();
        machine.spend_on(value.size())?;
        let length = made.len();
        clause_text(machine, &mut made, verb, precision, &value)?;
        machine.spend_on(made.len() - length)?;
    }
    made.push_str(rest);
    Ok(made)
}

fn precision(clause: &str) -> Result<(usize, &str), Fault> {
    let Some(after) = clause.strip_prefix('.') else {
        return Ok((PRECISION_DEFAULT, clause));
    };
    let end = after
        .find(|one: char| !one.is_ascii_digit())
        .unwrap_or(after.len());
    let digits = after[..end].parse::<usize>().ok();
    let digits = digits.filter(|digits| *digits <= PRECISION_MAX);
    let digits = digits.ok_or_else(|| {
        Fault::new("error while parsing precision: error while converting precision to integer")
    })?;
    Ok((digits, &after[end..]))
}

fn clause_text(
    machine: &mut Machine<'_>,
    made: &mut String,
    verb: char,
    precision: usize,
    value: &Val<'_>,
) -> Result<(), Fault> {
    let fits_not = |wanted: &str| {
        let of = value.type_name();
        Fault::new(format!("error during formatting: {wanted}, was given {of}"))
    };
    let written = match (verb, value) {
        ('s', value) => return shown(machine, made, value, true),
        ('d', Val::Int(number)) => write!(made, "{number}"),
        ('d', Val::Uint(number)) => write!(made, "{number}"),
        ('d', Val::Double(number)) => write!(made, "{}", go_number(*number)),
        ('d', _) => return Err(fits_not("decimal clause can only be used on integers")),
        ('f' | 'e', value) => {
            #[expect(clippy::cast_precision_loss, reason = "as upstream")]
            let number = match value {
                Val::Double(number) => *number,
                Val::Int(number) => *number as f64,
                Val::Uint(number) => *number as f64,
                _ => {
                    let kind = if verb == 'f' {
                        "fixed-point"
                    } else {
                        "scientific"
                    };
                    let why = format!("{kind} clause can only be used on doubles");
                    return Err(fits_not(&why));
                }
            };
            write!(made, "{}", of_double(number, verb, precision))
        }
        ('b', Val::Bool(is_true)) => write!(made, "{}", u8::from(*is_true)),
        ('b', Val::Int(number)) => write!(made, "{}{:b}", sign(*number), number.unsigned_abs()),
        ('b', Val::Uint(number)) => write!(made, "{number:b}"),
        ('b', _) => {
            return Err(fits_not(
                "only integers and bools can be formatted as binary",
            ));
        }
        ('x', Val::Int(number)) => write!(made, "{}{:x}", sign(*number), number.unsigned_abs()),
        ('X', Val::Int(number)) => write!(made, "{}{:X}", sign(*number), number.unsigned_abs()),
        ('x', Val::Uint(number)) => write!(made, "{number:x}"),
        ('X', Val::Uint(number)) => write!(made, "{number:X}"),
        ('x' | 'X', Val::Text(text)) => write!(made, "{}", hex(text.as_bytes(), verb)),
        ('x' | 'X', Val::Bytes(bytes)) => write!(made, "{}", hex(bytes, verb)),
        ('x' | 'X', _) => {
            let why = "only integers, byte buffers, and strings can be formatted as hex";
            return Err(fits_not(why));
        }
        ('o', Val::Int(number)) => write!(made, "{}{:o}", sign(*number), number.unsigned_abs()),
        ('o', Val::Uint(number)) => write!(made, "{number:o}"),
        ('o', _) => return Err(fits_not("octal clause can only be used on integers")),
        (other, _) => {
            let why = format!("unrecognized formatting clause \"{other}\"");
            return Err(Fault::new(format!(
                "could not parse formatting clause: {why}"
            )));
        }
    };
    written.map_err(|_| Fault::overload())
}

fn sign(number: i64) -> &'static str {
    if number < 0 { "-" } else { "" }
}

fn of_double(number: f64, verb: char, precision: usize) -> String {
    if !number.is_finite() {
        return go_number(number)
            .replace("Inf", "Infinity")
            .replace('+', "");
    }
    if verb == 'f' {
        return format!("{number:.precision$}");
    }
    let text = format!("{number:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

fn hex(bytes: &[u8], verb: char) -> String {
    let each = bytes.iter().map(|byte| match verb {
        'x' => format!("{byte:02x}"),
        _ => format!("{byte:02X}"),
    });
    each.collect()
}

/// `%s`; within lists and maps strings stand in quotes.
fn shown(
    machine: &mut Machine<'_>,
    made: &mut String,
    value: &Val<'_>,
    is_outer: bool,
) -> Result<(), Fault> {
    machine.spend(1)?;
    let text = match value {
        Val::Null => "null".to_owned(),
        Val::Bool(is_true) => is_true.to_string(),
        Val::Int(number) => number.to_string(),
        Val::Uint(number) => number.to_string(),
        Val::Double(number) if is_outer => go_number(*number),
        Val::Double(number) => of_double(*number, 'f', PRECISION_DEFAULT),
        Val::Text(text) if is_outer => text.to_string(),
        Val::Text(text) => {
            machine.spend_on(text.len())?;
            quoted(text)
        }
        Val::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Val::Duration(nanos) if is_outer => duration_text(*nanos),
        Val::Duration(nanos) => format!("duration(\"{}\")", duration_text(*nanos)),
        Val::Timestamp(at) if is_outer => at.to_string(),
        Val::Timestamp(at) => format!("timestamp(\"{at}\")"),
        Val::Type(name) => name.to_string(),
        other => return of_many(machine, made, other),
    };
    made.push_str(&text);
    Ok(())
}

fn of_many(machine: &mut Machine<'_>, made: &mut String, value: &Val<'_>) -> Result<(), Fault> {
    if let Some(list) = value.list() {
        made.push('[');
        for (index, one) in list.iter().enumerate() {
            if index > 0 {
                made.push_str(", ");
            }
            shown(machine, made, &one, false)?;
        }
        made.push(']');
        return Ok(());
    }
    let Some(table) = value.table() else {
        let of = value.type_name();
        let why = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, \
                   lists, types, durations, and timestamps";
        return Err(Fault::new(format!(
            "error during formatting: {why}, was given {of}"
        )));
    };
    made.push('{');
    for (index, (key, one)) in table.entries().into_iter().enumerate() {
        if index > 0 {
            made.push_str(", ");
        }
        shown(machine, made, &key.value(), false)?;
        made.push(':');
        shown(machine, made, &one, false)?;
    }
    made.push('}');
    Ok(())
}
