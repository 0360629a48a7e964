//! Functions of strings. Places are counted in characters.

use super::Fault;
use super::call::count;
use super::format;
use super::machine::{Machine, Outcome};
use super::value::{Text, Val};
use crate::exposition::go_number;
use crate::go_regexp;
use regex::Regex;
use std::borrow::Cow;

/// Bytes of a pattern that cost a unit, as upstream guesses its states.
const PATTERN_BYTES_PER_UNIT: usize = 4;

type Found<'a> = Result<Option<Val<'a>>, Fault>;

/// `None` where a string has no such function.
pub fn call<'a>(
    machine: &mut Machine<'a>,
    name: &str,
    text: &Text<'a>,
    rest: &[Val<'a>],
) -> Found<'a> {
    if let "matches" | "find" | "findAll" = name {
        return patterns(machine, name, text, rest);
    }
    if !matches!(name, "startsWith" | "endsWith" | "charAt") {
        machine.spend_on(text.len())?;
    }
    Ok(Some(match (name, rest) {
        ("contains", [Val::Text(part)]) => Val::Bool(text.contains(&**part)),
        ("startsWith", [Val::Text(part)]) => Val::Bool(text.starts_with(&**part)),
        ("endsWith", [Val::Text(part)]) => Val::Bool(text.ends_with(&**part)),
        ("charAt", [Val::Int(at)]) => char_at(text, *at)?,
        ("indexOf", [Val::Text(part)]) => index_of(text, part, 0)?,
        ("indexOf", [Val::Text(part), Val::Int(from)]) => index_of(text, part, *from)?,
        ("lastIndexOf", [Val::Text(part)]) => last_index_of(text, part, None)?,
        ("lastIndexOf", [Val::Text(part), Val::Int(to)]) => last_index_of(text, part, Some(*to))?,
        ("lowerAscii", []) => machine.made_text(text.to_ascii_lowercase())?,
        ("upperAscii", []) => machine.made_text(text.to_ascii_uppercase())?,
        ("trim", []) => text.trim().into(),
        ("substring", [Val::Int(from)]) => substring(text, *from, None)?,
        ("substring", [Val::Int(from), Val::Int(to)]) => substring(text, *from, Some(*to))?,
        ("replace", [Val::Text(old), Val::Text(new)]) => replaced(machine, text, old, new, -1)?,
        ("replace", [Val::Text(old), Val::Text(new), Val::Int(count)]) => {
            replaced(machine, text, old, new, *count)?
        }
        ("split", [Val::Text(by)]) => split(machine, text, by, -1)?,
        ("split", [Val::Text(by), Val::Int(count)]) => split(machine, text, by, *count)?,
        ("format", [arguments]) => {
            let list = arguments.list().ok_or_else(Fault::overload)?;
            let made = format::format(machine, text, list)?;
            machine.made_text(made)?
        }
        _ => return Ok(None),
    }))
}

/// The cost is upstream's: of the text, times that of the pattern.
fn patterns<'a>(
    machine: &mut Machine<'a>,
    name: &str,
    text: &Text<'a>,
    rest: &[Val<'a>],
) -> Found<'a> {
    let Some(Val::Text(pattern)) = rest.first() else {
        return Ok(None);
    };
    let of_text = (text.len() + 1).div_ceil(10);
    let of_pattern = pattern.len().div_ceil(PATTERN_BYTES_PER_UNIT).max(1);
    machine.spend(of_text.saturating_mul(of_pattern) as u64)?;
    let regex = match machine.pattern(pattern) {
        Some(known) => Cow::Borrowed(known),
        None => {
            // Compiling takes longer than most texts.
            machine.spend(COMPILE_COST + pattern.len() as u64)?;
            Cow::Owned(compiled(pattern)?)
        }
    };
    let text: &str = text;
    Ok(Some(match (name, &rest[1..]) {
        ("matches", []) => Val::Bool(regex.is_match(text)),
        ("find", []) => regex.find(text).map_or("", |found| found.as_str()).into(),
        ("findAll", []) => found_all(&regex, text, usize::MAX),
        ("findAll", [Val::Int(most)]) => {
            found_all(&regex, text, usize::try_from(*most).unwrap_or(usize::MAX))
        }
        _ => return Ok(None),
    }))
}

/// For a pattern that does not stand in the expression as it is.
const COMPILE_COST: u64 = 1000;

fn compiled(pattern: &str) -> Result<Regex, Fault> {
    go_regexp::compile(pattern).map_err(|why| Fault::new(format!("error parsing regexp: {why}")))
}

fn found_all<'a>(regex: &Regex, text: &str, most: usize) -> Val<'a> {
    let all = regex.find_iter(text).take(most);
    Val::own_list(all.map(|found| found.as_str().into()).collect())
}

fn out_of_range(at: i64) -> Fault {
    Fault::new(format!("index out of range: {at}"))
}

/// The byte of the n-th character; that behind the last one too.
fn byte_at(text: &str, at: i64) -> Option<usize> {
    let at = usize::try_from(at).ok()?;
    let ends = text.char_indices().map(|(byte, _)| byte);
    ends.chain([text.len()]).nth(at)
}

fn char_at<'a>(text: &str, at: i64) -> Outcome<'a> {
    let byte = byte_at(text, at).ok_or_else(|| out_of_range(at))?;
    let found = text[byte..].chars().next();
    Ok(Val::own_text(found.map(String::from).unwrap_or_default()))
}

fn index_of<'a>(text: &str, part: &str, from: i64) -> Outcome<'a> {
    if part.is_empty() {
        return Ok(Val::Int(from));
    }
    let start = byte_at(text, from).ok_or_else(|| out_of_range(from))?;
    let found = text[start..].find(part);
    Ok(found.map_or(Val::Int(-1), |at| count(text[..start + at].chars().count())))
}

/// `to` is the last place at which it may begin.
fn last_index_of<'a>(text: &str, part: &str, to: Option<i64>) -> Outcome<'a> {
    let end = match to {
        None => text.len(),
        Some(to) => {
            let start = byte_at(text, to).ok_or_else(|| out_of_range(to))?;
            (start + part.len()).min(text.len())
        }
    };
    if part.is_empty() {
        return Ok(to.map_or_else(|| count(text.chars().count()), Val::Int));
    }
    let mut end = end;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let found = text[..end].rfind(part);
    Ok(found.map_or(Val::Int(-1), |at| count(text[..at].chars().count())))
}

fn substring<'a>(text: &str, from: i64, to: Option<i64>) -> Outcome<'a> {
    let start = byte_at(text, from).ok_or_else(|| out_of_range(from))?;
    let end = match to {
        None => text.len(),
        Some(to) => byte_at(text, to).ok_or_else(|| out_of_range(to))?,
    };
    let part = text.get(start..end).ok_or_else(|| {
        let to = to.unwrap_or_default();
        Fault::new(format!("invalid substring range. start: {from}, end: {to}"))
    })?;
    Ok(part.into())
}

fn replaced<'a>(
    machine: &mut Machine<'a>,
    text: &str,
    old: &str,
    new: &str,
    most: i64,
) -> Outcome<'a> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let count = text.matches(old).take(most).count();
    // What it is going to be long is paid before it is made.
    machine.spend_on(text.len() + count.saturating_mul(new.len()))?;
    Ok(Val::own_text(text.replacen(old, new, most)))
}

fn split<'a>(machine: &mut Machine<'a>, text: &str, by: &str, most: i64) -> Outcome<'a> {
    machine.spend_on(text.len())?;
    let most = match most {
        0 => return Ok(Val::own_list(Vec::new())),
        most => usize::try_from(most).unwrap_or(usize::MAX),
    };
    if by.is_empty() {
        let mut all: Vec<Val<'a>> = Vec::new();
        for (at, one) in text.char_indices() {
            if all.len() + 1 == most {
                all.push(text[at..].into());
                break;
            }
            all.push(Val::own_text(one.to_string()));
        }
        return Ok(Val::own_list(all));
    }
    Ok(Val::own_list(
        text.splitn(most, by).map(Val::from).collect(),
    ))
}

/// As Go writes a string in quotes, as far as CEL has it so.
pub fn quoted(text: &str) -> String {
    let mut made = String::from("\"");
    for one in text.chars() {
        match one {
            '\u{7}' => made.push_str("\\a"),
            '\u{8}' => made.push_str("\\b"),
            '\u{c}' => made.push_str("\\f"),
            '\n' => made.push_str("\\n"),
            '\r' => made.push_str("\\r"),
            '\t' => made.push_str("\\t"),
            '\u{b}' => made.push_str("\\v"),
            '\\' => made.push_str("\\\\"),
            '"' => made.push_str("\\\""),
            other => made.push(other),
        }
    }
    made.push('"');
    made
}

/// A plain value in a message.
pub fn shown(value: &Val<'_>) -> String {
    match value {
        Val::Text(text) => text.to_string(),
        Val::Int(number) => number.to_string(),
        Val::Uint(number) => number.to_string(),
        Val::Double(number) => go_number(*number),
        Val::Bool(is_true) => is_true.to_string(),
        other => other.type_name().to_owned(),
    }
}
